"""Disproportionality and sequential statistics over drug-event pairs, and the signals made from the store."""
