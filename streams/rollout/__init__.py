"""The way of a release to the workers: announcements and reload."""
