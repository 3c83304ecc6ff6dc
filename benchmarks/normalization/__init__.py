"""Measurements of normalization: codes of mentions that were written for it, and names it has."""
