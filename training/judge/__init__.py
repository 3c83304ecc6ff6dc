"""Training of a judge: a head over the vectors of a frozen encoder."""
