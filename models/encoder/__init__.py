"""The transformer encoder that all models share, its split at a layer, and the nearest-neighbour index."""
