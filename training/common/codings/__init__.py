"""Coded mentions in parts that share no drug and no term, and terms taken out of a terminology."""
