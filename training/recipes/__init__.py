"""Recipes: files that say how the release of a task is made, and what runs them (`python -m training`)."""
