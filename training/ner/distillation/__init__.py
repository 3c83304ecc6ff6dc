"""What a tagger learns from other taggers: their answers, and texts without labels that they answer."""
