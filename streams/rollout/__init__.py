"""The way of a release to the workers: announcements, reload, shadow."""
