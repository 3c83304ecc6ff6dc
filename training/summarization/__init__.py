"""Training of the summarizer: rankers that extract, or a decoder by ECL (Lu et al. 2024)."""
