"""What happens to workers on a real Kafka: a suspension."""
