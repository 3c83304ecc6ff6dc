"""Evaluation of summarization: what is measured, and the baselines."""
