"""A broker inside this process, for a first run and for fast tests: librdkafka's mock cluster on a loopback
port.

It works in memory only, with four partitions a topic. A partition keeps about 5 MiB and silently drops its
oldest batches beyond that, so a producer must wait for its consumers; `streams.cli.feed` does.
"""

from __future__ import annotations

from types import TracebackType

from confluent_kafka import Producer

from streams.topics import TOPICS

#: Bytes that a partition keeps before it drops its oldest batches.
PARTITION_BYTES = 5 << 20
PARTITIONS = 4


class EmbeddedBroker:
    """Runs as long as the object exists; `bootstrap` is its address for Kafka clients, `prefix` PV_PREFIX."""

    def __init__(self, prefix: str = "") -> None:
        self._cluster = Producer(
            {"test.mock.num.brokers": 1, "bootstrap.servers": "unused:1", "log_level": 3}
        )
        broker = next(iter(self._cluster.list_topics(timeout=10).brokers.values()))
        self.bootstrap = f"{broker.host}:{broker.port}"
        # The mock cluster supports no admin requests, but it creates a topic when its metadata is requested.
        for topic in TOPICS:
            self._cluster.list_topics(prefix + topic.name, timeout=10)

    def __enter__(self) -> EmbeddedBroker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stops the broker and deletes its topics."""
        del self._cluster
