"""Dead letters, records that could not be processed: their headers, and sending them back."""
