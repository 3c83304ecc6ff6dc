"""Training of the acronym model: an encoder or m-network (Seneviratne et al. 2022), and prototypes."""
