"""Makes the Kafka consumers of the project, all with the same isolation and header handling, and producers
of confirmed messages; runs clients of any kind.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterable
from contextlib import asynccontextmanager
from itertools import islice
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import NodeNotReadyError

from streams.broker import tolerant_headers
from streams.settings import Settings
from streams.topics import broker_name, request_bytes
from streams.uninterrupted import uninterrupted

#: Seconds after which a consumer that does not stop is told again.
STOP_AGAIN = 0.5
#: Records of aborted transactions are not delivered.
ISOLATION = "read_committed"
#: Messages whose confirmations are awaited together.
SENDS_AT_A_TIME = 500


def kafka_consumer(settings: Settings, *topics: str, **options: Any) -> Any:
    """An aiokafka consumer with the settings' connection that skips aborted transactions and reads any header
    name; `topics` are names without PV_PREFIX, `options` those of AIOKafkaConsumer.
    """
    tolerant_headers.install()
    names = [broker_name(settings, topic) for topic in topics]
    consumer = _Consumer(*names, **settings.client(), isolation_level=ISOLATION, **options)
    retry_unknown_nodes(consumer._client)
    return consumer


def retry_unknown_nodes(client: Any) -> None:
    """Lets this AIOKafkaClient look for the coordinator again while the broker names no node, as a Kafka may
    that has just started. An assertion of aiokafka would end the task which keeps the membership.
    """
    lookup = client.coordinator_lookup

    async def retriable_lookup(kind: Any, key: str) -> Any:
        if client.get_random_node() is None:
            raise NodeNotReadyError("the broker names no node")
        return await lookup(kind, key)

    client.coordinator_lookup = retriable_lookup


class _Consumer(AIOKafkaConsumer):  # type: ignore[misc]
    """A consumer whose `stop` ends, also right after `assign`. The task that fetches then ends the requests
    of the earlier assignment and takes its own cancellation for that of a request: it goes on, and `stop`
    waits for it.
    """

    async def stop(self) -> None:
        again = asyncio.create_task(self._stop_again())
        try:
            await whole_stop(self, super().stop())
        finally:
            again.cancel()

    async def _stop_again(self) -> None:
        while True:
            await asyncio.sleep(STOP_AGAIN)
            if self._fetcher is not None:
                self._fetcher._fetch_task.cancel()


@asynccontextmanager
async def running_client(client: Any) -> AsyncIterator[Any]:
    """Starts an aiokafka consumer or producer for the block and stops it afterwards, also when its start
    fails or is cancelled, which its own `async with` does not.
    """
    try:
        await uninterrupted(client.start())
        yield client
    finally:
        await uninterrupted(client.stop())


async def whole_stop(consumer: Any, stop: Awaitable[None]) -> None:
    """Awaits the stop of an AIOKafkaConsumer, and ends it where it breaks off: a fetch that pauses after an
    error, as while the broker is away, is cancelled by it, and it passes that cancellation on.
    """
    try:
        await stop
    except asyncio.CancelledError:
        if (task := asyncio.current_task()) is None or task.cancelling():
            raise
        await consumer._client.close()


def kafka_producer(settings: Settings, **options: Any) -> Any:
    """An idempotent aiokafka producer with the settings' connection, which all in-sync replicas confirm;
    `options` are those of AIOKafkaProducer.
    """
    return AIOKafkaProducer(**settings.client(), acks="all", enable_idempotence=True, **options)


async def send_all(settings: Settings, messages: Iterable[tuple[str, bytes, bytes | None]]) -> None:
    """Sends messages (topic without PV_PREFIX, key, value), and waits for their confirmations."""
    size, rest = request_bytes(settings), iter(messages)
    async with running_client(kafka_producer(settings, linger_ms=5, max_request_size=size)) as producer:
        while chunk := list(islice(rest, SENDS_AT_A_TIME)):
            sends = [
                await producer.send(broker_name(settings, name), value, key) for name, key, value in chunk
            ]
            await asyncio.gather(*sends)
