"""A broker inside this process, for a first run and for fast tests: librdkafka's mock cluster on a loopback
port.

Memory only, four partitions a topic, and about 5 MiB a partition, beyond which the oldest batches are dropped
without a word. Whatever feeds it must hold back; `streams.broker.feed` does.
"""

from __future__ import annotations

from types import TracebackType

from confluent_kafka import Producer

from streams.topics import TOPICS

#: What each partition keeps before it drops its oldest batches.
PARTITION_BYTES = 5 << 20
PARTITIONS = 4


class EmbeddedBroker:
    """Lives as long as the object; `bootstrap` is where Kafka clients find it."""

    def __init__(self) -> None:
        self._cluster = Producer(
            {"test.mock.num.brokers": 1, "bootstrap.servers": "unused:1", "log_level": 3}
        )
        found = next(iter(self._cluster.list_topics(timeout=10).brokers.values()))
        self.bootstrap = f"{found.host}:{found.port}"
        # The mock cluster answers no admin call, but creates a topic that it is asked for.
        for topic in TOPICS:
            self._cluster.list_topics(topic.name, timeout=10)

    def __enter__(self) -> EmbeddedBroker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the broker and forgets its topics."""
        del self._cluster
