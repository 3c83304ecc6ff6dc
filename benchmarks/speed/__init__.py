"""The speed of the pipeline, compared with the encoder alone, usual pipelines and a bare loop."""
