"""What each stage does with a batch of records: from reports to model inputs, from answers to records."""
