"""The networks that the summarizer is trained with."""
