"""Measurements of the summarizer: speed, written messages, two releases, and each contrastive loss."""
