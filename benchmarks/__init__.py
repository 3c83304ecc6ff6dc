"""Measurements of the project, one program for each question that is asked again."""

from models.process import prepare_program

prepare_program()
