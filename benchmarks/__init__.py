"""One file for each question asked of the project; every figure in RESULTS.md comes from one of them."""
