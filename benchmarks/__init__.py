"""Measurements of the project, one program for each question; all figures in RESULTS.md come from them."""
