"""Training runs and evaluation; publishes releases through models.releases.store and never touches Kafka."""
