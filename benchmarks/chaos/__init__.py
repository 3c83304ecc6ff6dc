"""The pipeline under kills, changes of release and faults: records lost, mixed up, out of order."""
