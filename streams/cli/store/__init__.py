"""Commands about the store of results and the signals that are made from it."""
