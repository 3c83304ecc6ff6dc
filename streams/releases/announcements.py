"""Announcements on the topic `releases`: which version of a task is live, and which one is its shadow."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiokafka import AIOKafkaProducer, TopicPartition

from models.redaction import redact
from models.types import TASKS
from streams.broker.consumer import kafka_consumer
from streams.codec import BadRecord, decode, encode
from streams.records import SHADOW, Announcement
from streams.settings import Settings
from streams.topics import RELEASES, broker_name

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An announced release that was not loaded, and the reason."""

    version: str
    reason: str
    retryable: bool = False
    """The store failed, not the release, so loading is tried again."""

    def status(self) -> dict[str, Any]:
        """For /releases."""
        return {"version": self.version, "reason": redact(self.reason), "passing": self.retryable}


async def announce(settings: Settings, key: str, announcement: Announcement | None) -> None:
    """Writes the announcement of a key and waits for the broker's confirmation; None ends a shadow."""
    producer = AIOKafkaProducer(**settings.client(), acks="all", enable_idempotence=True)
    async with running_client(producer):
        value = None if announcement is None else encode(announcement)
        await producer.send_and_wait(broker_name(settings, RELEASES.name), key=key.encode(), value=value)


class Announcements(dict[str, Announcement]):
    """The valid announcements by key: a task, or a task with `.shadow`."""

    def __init__(self) -> None:
        super().__init__()
        self._generations: dict[str, int] = {}

    def apply(self, message: Any) -> str | None:
        """`apply_message`, and the generation that the message starts."""
        key = apply_message(self, message)
        if key is not None:
            self._generations[key] = message.offset + 1
        return key

    def generation(self, key: str) -> int:
        """The generation of the release announced under a key: the offset of the announcement plus 1, and 0
        without one.
        """
        return self._generations.get(key, 0) if key in self else 0


async def read_announcements(settings: Settings) -> Announcements:
    """The valid announcements."""
    async with reader(settings) as consumer:
        return await read_to_end(consumer)


@asynccontextmanager
async def running_client(client: Any) -> AsyncIterator[Any]:
    """Starts an aiokafka client for the block and stops it afterwards, also when its start fails, which its
    own `async with` does not.
    """
    try:
        await client.start()
        yield client
    finally:
        await client.stop()


@asynccontextmanager
async def reader(settings: Settings) -> AsyncIterator[Any]:
    """A consumer of all announcements from the first one on, without a consumer group."""
    consumer = kafka_consumer(
        settings, RELEASES.name, group_id=None, auto_offset_reset="earliest", fetch_max_wait_ms=200
    )
    async with running_client(consumer):
        yield consumer


async def read_to_end(consumer: Any) -> Announcements:
    """The valid announcements up to the present end of the topic."""
    announcements = Announcements()
    partitions = [
        TopicPartition(name, p)
        for name in consumer.subscription()
        for p in consumer.partitions_for_topic(name) or ()
    ]
    ends = await consumer.end_offsets(partitions)
    for tp in partitions:
        # Compaction leaves gaps: the position reaches the end without a message for each offset.
        while await consumer.position(tp) < ends[tp]:
            for messages in (await consumer.getmany(tp, timeout_ms=500)).values():
                for message in messages:
                    announcements.apply(message)
    return announcements


def apply_message(announcements: dict[str, Announcement], message: Any) -> str | None:
    """Updates `announcements` by a message and returns its key; an invalid message changes nothing, gives
    None and is logged.
    """
    key = (message.key or b"").decode(errors="replace")
    if key.removesuffix(SHADOW) not in TASKS:
        log.warning("%s@%d is not an announcement: unknown key", RELEASES.name, message.offset)
        return None
    if message.value is None:
        announcements.pop(key, None)
        return key
    try:
        announcement = decode(Announcement, message.value)
    except BadRecord as error:
        log.warning("%s@%d is not an announcement: %s", RELEASES.name, message.offset, error)
        return None
    if announcement.key != key:
        log.warning(
            "%s@%d is not an announcement: its key belongs to another task", RELEASES.name, message.offset
        )
        return None
    announcements[key] = announcement
    return key
