"""Training of the tagger (CONORM-NER)."""
