"""What happens to workers on a real Kafka: a change of model, a suspension, a steady load."""
