"""The checks of the teaching corpus."""
