"""An encoder as its list of layers, and its split into lower and upper ones."""
