"""A release as a folder: manifest, verification, local and shared stores, signature."""
