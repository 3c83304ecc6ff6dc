"""What happens to a post before the first topic: filter, masking, hash of the author, duplicates."""
