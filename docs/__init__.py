"""The documentation, and the program that writes the tables in it."""
