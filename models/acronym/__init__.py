"""Long forms of acronyms: definitions in the text, m-network, prototypes."""
