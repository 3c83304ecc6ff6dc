"""Makes the Kafka consumers of the project, all with the same isolation and header handling, and runs clients
of any kind.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
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


@asynccontextmanager
async def running_client(client: Any) -> AsyncIterator[Any]:
    """Starts an aiokafka consumer or producer for the block and stops it afterwards, also when its start
    fails or is cancelled, which its own `async with` does not.
    """
    try:
        await client.start()
        yield client
    finally:
        try:
            await client.stop()
        except asyncio.CancelledError:
            # Without a broker a consumer passes on that of a task which it has cancelled itself.
            if (task := asyncio.current_task()) is None or task.cancelling():
                raise
