"""Measurements of the project, one program for each question that is asked again; RESULTS.md has the main figures."""
