"""Sources of live posts: one module for each protocol, which yields the items of `streams.intake.items`."""
