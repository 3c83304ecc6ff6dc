"""Coding of mentions to a terminology, with the sentence as context (CONORM-EN)."""
