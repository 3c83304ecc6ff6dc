"""Measurements of the summarizer: speed, and what each contrastive loss contributes."""
