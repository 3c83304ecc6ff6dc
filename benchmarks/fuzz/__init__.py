"""Fuzzed records through the stages: each must come out exactly one way."""
