"""Training of normalization with dynamic context refining (CONORM-EN)."""
