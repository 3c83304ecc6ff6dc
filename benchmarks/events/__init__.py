"""Which events are found, flagged and alarmed in posts and in sentences written to mislead."""
