"""Patients' phrases: training of the encoder on them, and the choice of those that are searched."""
