"""Evaluation of posts from their text to coded events, by the stages themselves."""
