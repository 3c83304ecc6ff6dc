"""Measurements of the acronym stage: speed, and senses that training has in no corpus."""
