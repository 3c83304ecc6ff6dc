"""Training of the acronym model: m-network (Seneviratne et al. 2022) and prototypes."""
