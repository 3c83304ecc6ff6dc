"""The stages between Kafka topics: decode, infer, send, confirm, acknowledge; no model is trained here."""
