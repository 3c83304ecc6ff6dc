"""What a text states of a case: its patient, the treatment, and the course of the reaction."""
