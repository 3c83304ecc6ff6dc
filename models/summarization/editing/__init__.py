"""Short questions that are edited: a closed set of openings over the message's own words."""
