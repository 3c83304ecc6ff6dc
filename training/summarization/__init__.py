"""Training of the summarizer with entity-driven contrastive learning (ECL, Lu et al. 2024)."""
