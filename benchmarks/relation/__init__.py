"""Measurements of the relation stage: scores over folds."""
