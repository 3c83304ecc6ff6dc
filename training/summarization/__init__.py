"""Training of the summarizer: rankers, or a decoder with ECL (Lu et al. 2024)."""
