"""Splits of coded mentions by drug and preferred term, and draws of terms removed from a terminology."""
