"""The form in which a text is read, with a map to the text as it was written."""
