"""The records of a batch before and after inference: decoding, division into batches, provenance."""
