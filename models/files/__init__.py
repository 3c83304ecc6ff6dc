"""Files of texts as people have them, read row by row."""
