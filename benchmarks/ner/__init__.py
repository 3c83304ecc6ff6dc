"""Scores of tagging over the folds of the ADE corpus, and what the parts and texts of its training bring."""
