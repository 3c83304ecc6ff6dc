"""What a worker reports about itself (HTTP server, progress, lag), and the watchdog that ends it."""
