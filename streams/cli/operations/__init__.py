"""What an operator asks: the state of the pipeline, its dead letters, its set-up and its interface."""
