"""Tagging of drugs, adverse events, indications and withdrawal symptoms in text (CONORM-NER)."""
