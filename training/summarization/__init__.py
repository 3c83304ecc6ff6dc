"""Training of the summarizer: rankers and an editor, or a decoder with ECL (Lu et al. 2024)."""
