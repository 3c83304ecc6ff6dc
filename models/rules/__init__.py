"""Rules as data: their notation, the patterns that tables of it make, and sentences."""
