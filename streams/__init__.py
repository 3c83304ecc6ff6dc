"""The stages between Kafka topics: decode, infer, send, confirm, acknowledge; no model is trained here."""

__version__ = "0.1.0"
