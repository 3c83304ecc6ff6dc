"""Calibration of NIL: the threshold, and the rule that is fitted on removed terms."""
