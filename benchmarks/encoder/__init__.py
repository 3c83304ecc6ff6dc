"""Measurements of the encoder: batch invariance, the packed encoder, number formats."""
