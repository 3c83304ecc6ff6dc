"""A BERT whose batch is one row of pieces without padding, and the reading of its weights."""
