"""Further evaluations of the coder: from the text alone, and with terms removed."""
