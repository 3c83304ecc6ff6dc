"""The networks of releases in the forms of other libraries, with model cards."""
