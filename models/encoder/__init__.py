"""The transformer encoder that all models share: packed, split at a layer; and nearest neighbours."""
