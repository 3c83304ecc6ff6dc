"""Edits of extracted short questions: openings from a closed set, names for pronouns, words left out."""
