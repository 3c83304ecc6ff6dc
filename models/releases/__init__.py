"""Releases of models: manifest, verification, local and shared stores, signature, loading."""
