"""Scores of tagging over the folds of the ADE corpus, and what each part of its training contributes."""
