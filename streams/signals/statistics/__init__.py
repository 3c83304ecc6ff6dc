"""Disproportionality and sequential statistics over counts of reports; nothing of the store or of Kafka."""
