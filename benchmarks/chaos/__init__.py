"""The pipeline under kills and changes of release: records lost, mixed up, out of order."""
