"""Writes the parts of the documentation and of the deployment that are made from other files."""
