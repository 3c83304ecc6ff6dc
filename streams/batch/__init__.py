"""What a stage does to the records of a batch besides inference: decoding, cutting, and the provenance."""
