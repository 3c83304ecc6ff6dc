"""Throughput and cost of the whole pipeline, its workers, its releases and its metrics."""
