"""The heads of a relation release in training: tags of words, and whether a sentence reports an event."""
