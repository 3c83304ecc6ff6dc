"""Mentions as tags of words, and as spans to be counted."""
