"""Training of normalization: an encoder on lay phrases, or with dynamic context refining (CONORM-EN)."""
