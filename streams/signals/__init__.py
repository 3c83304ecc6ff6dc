"""Signals of disproportionate reporting, made from the store."""
