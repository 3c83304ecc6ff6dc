"""Dead letters, records that could not be processed: their headers, reading them, and sending them back."""
