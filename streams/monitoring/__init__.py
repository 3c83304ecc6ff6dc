"""What a worker reports about itself, the watchdog that ends it, and the state of the pipeline."""
