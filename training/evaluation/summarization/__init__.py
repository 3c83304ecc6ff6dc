"""Evaluation of summarization: what is measured, the baselines, and whether answers are faithful."""
