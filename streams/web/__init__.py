"""A page on which people look at the results and review them."""
