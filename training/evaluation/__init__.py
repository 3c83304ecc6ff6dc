"""What is measured for each task: one module reads a split of a public corpus and counts on it."""
