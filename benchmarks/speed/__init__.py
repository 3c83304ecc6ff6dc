"""The speed of the stages and of the whole pipeline."""
