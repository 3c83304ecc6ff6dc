"""One module for each protocol that live posts come over."""
