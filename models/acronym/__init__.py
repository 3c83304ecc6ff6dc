"""Long forms of acronyms: definitions in the text, surface features, prototypes, optional m-network."""
