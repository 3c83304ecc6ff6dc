"""Training of the three rankers with which short questions are extracted."""
