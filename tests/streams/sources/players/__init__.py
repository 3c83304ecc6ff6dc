"""Local servers that play the protocols of live sources, with faults."""
