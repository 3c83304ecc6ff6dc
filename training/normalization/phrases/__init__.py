"""Patients' phrases in training: those that teach the encoder, and those that are searched."""
