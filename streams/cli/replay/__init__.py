"""Commands that read the records of topics again."""
