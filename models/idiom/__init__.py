"""Sentence vectors that place an idiom by its meaning."""
