"""The commands of pvstream and what they print."""
