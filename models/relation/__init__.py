"""Drugs, effects and which drug caused which effect, by nearest neighbours in learned spaces."""
