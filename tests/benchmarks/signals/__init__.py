"""Tests of the benchmarks of signals."""
