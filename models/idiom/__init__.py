"""Sentence vectors that represent idioms by their meaning."""
