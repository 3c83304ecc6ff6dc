"""Measurements of the project, one program for each question that is asked again."""
