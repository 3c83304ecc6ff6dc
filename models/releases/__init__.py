"""Releases of models: manifest, verification, store, signature, loading."""
