"""Coding of mentions to a terminology with context refining (CONORM-EN)."""
