"""The speed of the pipeline, compared with the encoder alone and a bare loop."""
