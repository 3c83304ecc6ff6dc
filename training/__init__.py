"""Training runs and evaluation; publishes releases through models.store and never touches Kafka."""
