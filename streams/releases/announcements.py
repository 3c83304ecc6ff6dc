"""What is announced on the topic `releases`: which version of a task is live, and which one runs in its
shadow.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from models.types import TASKS
from streams.codec import BadRecord, decode, encode
from streams.records import SHADOW, Announcement
from streams.settings import Settings
from streams.topics import RELEASES

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A release that was announced and not taken, and why."""

    version: str
    reason: str
    passing: bool = False
    """The store failed, not the release: it is tried again."""


async def announce(settings: Settings, key: str, announcement: Announcement | None) -> None:
    """Writes what holds for a key from now on, and waits until the broker has it; None ends a shadow."""
    async with started(
        AIOKafkaProducer(**settings.client(), acks="all", enable_idempotence=True)
    ) as producer:
        value = None if announcement is None else encode(announcement)
        await producer.send_and_wait(RELEASES.name, key=key.encode(), value=value)


async def announced(settings: Settings) -> dict[str, Announcement]:
    """What holds now: task, or task and `.shadow`, to its last announcement."""
    async with reader(settings) as consumer:
        return (await read_present(consumer))[0]


@asynccontextmanager
async def started(client: Any) -> AsyncIterator[Any]:
    """A client of aiokafka for the time of the block; one that cannot start is stopped too, which its own
    `async with` forgets.
    """
    try:
        await client.start()
        yield client
    finally:
        await client.stop()


@asynccontextmanager
async def reader(settings: Settings) -> AsyncIterator[Any]:
    """A consumer of all announcements from the first one on, outside of any group."""
    consumer = AIOKafkaConsumer(
        RELEASES.name, **settings.client(), group_id=None, auto_offset_reset="earliest", fetch_max_wait_ms=200
    )
    async with started(consumer):
        yield consumer


async def read_present(consumer: Any) -> tuple[dict[str, Announcement], int]:
    """Reads up to the ends that the topic has now; the announcements that hold, and how many were read."""
    found: dict[str, Announcement] = {}
    n = 0
    partitions = [
        TopicPartition(RELEASES.name, p) for p in consumer.partitions_for_topic(RELEASES.name) or ()
    ]
    ends = await consumer.end_offsets(partitions)
    for tp in partitions:
        # Compaction leaves gaps: the position passes the end without a message for each offset.
        while await consumer.position(tp) < ends[tp]:
            for messages in (await consumer.getmany(tp, timeout_ms=500)).values():
                for message in messages:
                    n += 1
                    apply(found, message)
    return found, n


def apply(found: dict[str, Announcement], message: Any) -> str | None:
    """Takes a message into what holds and gives its key; one that is no announcement changes nothing."""
    key = (message.key or b"").decode(errors="replace")
    if key.removesuffix(SHADOW) not in TASKS:
        log.warning("%s@%d is no announcement: unknown key", RELEASES.name, message.offset)
        return None
    if message.value is None:
        found.pop(key, None)
        return key
    try:
        announcement = decode(Announcement, message.value)
    except BadRecord as error:
        log.warning("%s@%d is no announcement: %s", RELEASES.name, message.offset, error)
        return None
    if announcement.key != key:
        log.warning("%s@%d is no announcement: its key is another task's", RELEASES.name, message.offset)
        return None
    found[key] = announcement
    return key
