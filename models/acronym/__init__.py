"""Long forms of acronyms: definitions in the text, else dictionary, cue words, prototypes and encoder."""
