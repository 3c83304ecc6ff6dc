"""Announcements on the topic `releases`: which version of a task is live."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiokafka import TopicPartition
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from models.redaction import redact
from models.releases.manifest import PassingError
from models.types import RELEASED, TASKS
from streams.broker.consumer import kafka_consumer, kafka_producer, running_client
from streams.codec import BadRecord, decode, encode
from streams.records import Announcement
from streams.rollout.trust import SIGNATURE_HEADER, Trust, sign_announcement
from streams.settings import Settings
from streams.topics import RELEASES, broker_name

log = logging.getLogger(__name__)
#: Keys of candidates that earlier versions ran beside the live releases.
_OF_SHADOWS = frozenset(f"{task}.shadow" for task in TASKS)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An announced release that was not loaded, and the reason."""

    version: str
    reason: str
    retryable: bool = False
    """Not the release is at fault but the store or the machine, so loading is tried again."""

    def status(self) -> dict[str, Any]:
        """For /releases."""
        return {"version": self.version, "reason": redact(self.reason), "passing": self.retryable}


def is_passing(error: Exception) -> bool:
    """Whether a later attempt to load the same release may succeed."""
    return isinstance(error, PassingError | OSError | MemoryError)


async def send(
    settings: Settings, key: str, announcement: Announcement, signer: Ed25519PrivateKey | None = None
) -> None:
    """Writes the announcement of a key, signed if there is a signer; the broker has confirmed it."""
    value = encode(announcement)
    headers = [(SIGNATURE_HEADER, sign_announcement(value, signer))] if signer is not None else []
    producer = kafka_producer(settings)
    async with running_client(producer):
        topic = broker_name(settings, RELEASES.name)
        await producer.send_and_wait(topic, key=key.encode(), value=value, headers=headers)


class Announcements(dict[str, Announcement]):
    """The valid announcements by task."""

    def __init__(self, trust: Trust | None = None) -> None:
        """Where signatures are required (`trust`), those accepted earlier are valid until newer ones are
        read.
        """
        super().__init__(trust.accepted() if trust is not None else {})
        self._trust = trust
        self._generations: dict[str, int] = {}
        self._before: dict[str, Announcement | None] = {}

    def apply(self, message: Any) -> str | None:
        """`apply_message`, and the generation that the message starts."""
        before = dict(self)
        key = apply_message(self, message, self._trust)
        if key is not None:
            self._generations[key] = message.offset + 1
            self._before[key] = before.get(key)
        return key

    def rival(self, key: str, announcement: Announcement) -> Announcement | None:
        """An announcement that was made at the same time as this one: the one that holds in its place, or the
        one that it replaced without knowing it, which has the same sequence.
        """
        last = self.get(key)
        if last != announcement:
            return last
        before = self._before.get(key)
        return before if before is not None and before.sequence == announcement.sequence else None

    def generation(self, key: str) -> int:
        """The offset of the announcement under a key plus 1, and 0 without one."""
        return self._generations.get(key, 0) if key in self else 0


async def read_announcements(settings: Settings) -> Announcements:
    """The valid announcements."""
    async with reader(settings) as consumer:
        return (await read_to_end(consumer, Trust.of(settings)))[0]


@asynccontextmanager
async def reader(settings: Settings) -> AsyncIterator[Any]:
    """A consumer of all announcements from the first one on, without a consumer group."""
    consumer = kafka_consumer(
        settings, RELEASES.name, group_id=None, auto_offset_reset="earliest", fetch_max_wait_ms=200
    )
    async with running_client(consumer):
        yield consumer


async def read_to_end(consumer: Any, trust: Trust | None = None) -> tuple[Announcements, int]:
    """Reads up to the present end of the topic; the valid announcements and the messages read."""
    announcements, count = Announcements(trust), 0
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
                    count += 1
                    announcements.apply(message)
    return announcements, count


def apply_message(
    announcements: dict[str, Announcement], message: Any, trust: Trust | None = None
) -> str | None:
    """Updates `announcements` by a message and returns its key; an invalid message, or one that is not to be
    trusted, changes nothing, gives None and is logged. What earlier versions wrote about shadows is
    passed over.
    """
    key = (message.key or b"").decode(errors="replace")
    if key in _OF_SHADOWS:
        return key
    try:
        announcement = _read(key, message, trust)
    except BadRecord as error:
        log.warning("%s@%d is not an announcement: %s", RELEASES.name, message.offset, error)
        return None
    if announcement is None:
        announcements.pop(key, None)
    else:
        announcements[key] = announcement
    return key


def _read(key: str, message: Any, trust: Trust | None) -> Announcement | None:
    """None for a null value; raises BadRecord."""
    if key not in RELEASED:
        raise BadRecord("unknown key")
    if message.value is None:
        if trust is not None:
            raise BadRecord("a null value is not signed, and a signature is required")
        return None
    announcement = decode(Announcement, message.value)
    if announcement.key != key:
        raise BadRecord("its key belongs to another task")
    if trust is not None:
        trust.accept(key, announcement, message)
    return announcement
