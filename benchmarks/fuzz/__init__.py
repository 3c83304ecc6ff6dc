"""Fuzzed records through the stages, with and without a broker: each must come out exactly one way."""
