"""Training of the two rankers with which short questions are extracted."""
