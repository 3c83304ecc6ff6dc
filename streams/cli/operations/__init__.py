"""Commands for operators: state of the pipeline, dead letters, checks of the set-up."""
