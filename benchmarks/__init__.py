"""Measurements of the project, one program for each question that is asked again."""

from models.first_words import announce_in_programs

announce_in_programs()
