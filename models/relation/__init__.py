"""Which drug caused which effect, by nearest neighbours in a learned space."""
