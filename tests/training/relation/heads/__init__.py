"""Tests of the heads of a relation release in training."""
