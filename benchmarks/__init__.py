"""Measurements of the project, one file for each question; all figures in RESULTS.md come from them."""
