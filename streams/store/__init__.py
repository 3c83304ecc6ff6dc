"""The results of the stages as tables of a database."""
