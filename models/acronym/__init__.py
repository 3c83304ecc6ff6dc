"""Long forms of acronyms: definitions in the text, else a dictionary with frequencies and cue words."""
