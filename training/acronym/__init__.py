"""Releases of the acronym model: tables, or an m-network (Seneviratne et al. 2022) that is trained."""
