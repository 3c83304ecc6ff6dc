"""What a worker reports about itself (HTTP server, progress, lag), the watchdog that ends it, and the state
of the whole pipeline.
"""
