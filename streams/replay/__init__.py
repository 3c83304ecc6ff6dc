"""Replays of topics: running, scoring against gold, comparing releases, reports."""
