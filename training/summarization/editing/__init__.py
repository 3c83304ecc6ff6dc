"""Training of the editor of short questions."""
