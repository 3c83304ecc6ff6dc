"""Decisions of reviewers: their topic, which is a chain of hashes, and their export as gold."""
