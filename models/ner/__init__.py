"""Tagging of drugs, adverse events, indications and symptoms in text, and their status (CONORM-NER)."""
