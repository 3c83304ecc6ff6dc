"""A stage as a Faust app with its own consumer group; the only package that uses Faust."""
