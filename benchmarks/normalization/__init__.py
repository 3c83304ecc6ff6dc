"""Measurements of normalization on mentions that were written for reading."""
