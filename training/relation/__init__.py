"""Training of the relation model: CLNER, CLDR and CLGS (Theodoropoulos et al. 2021)."""
