"""Measurements of the relation stage: speed, scores over folds, the tables and maps of the paper."""
