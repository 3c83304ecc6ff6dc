"""The store in ClickHouse: what is written and asked, who may write, and its tables."""
