"""What all training programs share: corpora, loop, batching, adapters, checkpoints, publishing."""
