"""The embedding spaces of CLNER, CLDR and CLGS in training: encoders, graphs and losses."""
