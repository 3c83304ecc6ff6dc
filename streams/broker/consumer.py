"""Makes the Kafka consumers of the project, all with the same isolation and header handling."""

from __future__ import annotations

from typing import Any

from aiokafka import AIOKafkaConsumer

from streams.broker import tolerant_headers
from streams.broker.coordinator_lookup import retry_unknown_nodes
from streams.settings import Settings
from streams.topics import broker_name

#: Records of aborted transactions are not delivered.
ISOLATION = "read_committed"


def kafka_consumer(settings: Settings, *topics: str, **options: Any) -> Any:
    """An aiokafka consumer with the settings' connection that skips aborted transactions and reads any header
    name; `topics` are names without PV_PREFIX, `options` those of AIOKafkaConsumer.
    """
    tolerant_headers.install()
    names = [broker_name(settings, topic) for topic in topics]
    consumer = AIOKafkaConsumer(*names, **settings.client(), isolation_level=ISOLATION, **options)
    retry_unknown_nodes(consumer._client)
    return consumer
