"""The command demo: one run of the whole pipeline, and what it prints."""
