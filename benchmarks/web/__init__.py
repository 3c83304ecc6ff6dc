"""The page of reports: how long its views take, and whether a decision survives a kill."""
