"""Further questions to the coder."""
