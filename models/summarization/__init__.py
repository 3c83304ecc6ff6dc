"""Short questions from long ones: extracted and edited, or written by a decoder."""
