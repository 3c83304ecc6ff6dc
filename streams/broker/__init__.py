"""The embedded broker, the check that a broker answers, the log filter, and reading of topic ranges."""
