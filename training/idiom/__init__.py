"""Training of idiom-aware sentence vectors (He et al. 2024)."""
