"""Tagging of drugs, adverse events, indications and withdrawal symptoms (CONORM-NER)."""
