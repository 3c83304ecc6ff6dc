"""The transformer encoder that all models share, its two halves, and the nearest-neighbour index."""
