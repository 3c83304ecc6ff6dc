"""Evaluation of each task: one module reads a split of a public corpus and scores predictions on it."""
