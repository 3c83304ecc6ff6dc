"""Tests of the benchmarks of the tagger."""
