"""The checks of the teaching corpus, and how new files are taken into it."""
