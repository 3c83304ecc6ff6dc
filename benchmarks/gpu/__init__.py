"""What a GPU brings, and whether it answers as the processor does."""
