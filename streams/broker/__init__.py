"""The embedded broker, the check that a broker answers, and reading ranges of topics."""
