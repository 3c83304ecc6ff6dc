"""Texts written for this project, with their readers and their checks."""
