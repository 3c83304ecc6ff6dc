"""Coding of mentions to a terminology (CONORM-EN), or NIL; with the sentence where a release reads it."""
