"""How fast the pipeline is, and beside what: the encoder alone, usual pipelines, a bare loop."""
