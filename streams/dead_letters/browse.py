"""Reads dead letters for an operator: counts by reason, a list, and a single letter in full."""

from __future__ import annotations

from collections import Counter, deque
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from datetime import datetime

from aiokafka import TopicPartition

from streams.broker.groups import committed_metadata
from streams.broker.ranges import Progress, read_chunks
from streams.dead_letters.headers import ATTEMPTS, DIGEST, TRUNCATED, attempts_of
from streams.dead_letters.redrive import REASONS, reason_of, redrive_group, source_topic
from streams.dead_letters.redriven import Ranges, hold, read
from streams.records import Inbound
from streams.settings import Settings
from streams.topics import TopicsError, admin_client, broker_name, require

#: Headers that the pipeline writes. All others are the sender's own.
DESCRIBED = (
    "pv-stage", "pv-reason", "pv-detail", "pv-release", "pv-topic", "pv-partition", "pv-offset",
    ATTEMPTS, TRUNCATED, DIGEST,
)  # fmt: skip


Redriven = dict[tuple[str, int], tuple[int, Ranges]]
"""For a reason and a partition the offset before which all letters were looked at, and what was left of them.
"""


@dataclass(frozen=True, slots=True)
class Described:
    """A dead letter without anything that a sender wrote."""

    topic: str
    partition: int
    offset: int
    written_at: datetime | None
    stage: str
    reason: str
    detail: str
    release: str
    source: str
    """`topic/partition@offset` of the source record."""
    attempts: int
    """How often it was sent back."""
    bytes: int
    waiting: bool
    """Not sent back since it was written."""


@dataclass(slots=True)
class Letters:
    """The letters of a topic."""

    topic: str
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Of stage and reason."""
    waiting: Counter[tuple[str, str]] = field(default_factory=Counter)
    """The same, of those that were not sent back."""
    newest: list[Described] = field(default_factory=list)


async def browse(
    settings: Settings, dead_topic: str, *, reason: str | None = None, limit: int = 0, progress: Progress
) -> Letters:
    """Counts the letters that are in a topic now, and describes the newest `limit` of those with a reason
    (None: any), the oldest first. Raises TopicsError.
    """
    topic = source_topic(dead_topic).dead_letters
    await require(settings, (topic,))
    redriven = await _redriven(settings, dead_topic)
    letters, newest = Letters(dead_topic), deque[Described](maxlen=limit)
    chunks = read_chunks(settings, topic, "beginning", "end", progress)
    async with aclosing(chunks):
        async for records in chunks:
            for record in records:
                letter = describe(record, redriven)
                kind = letter.stage, letter.reason
                letters.counts[kind] += 1
                letters.waiting[kind] += letter.waiting
                if reason in (None, letter.reason):
                    newest.append(letter)
    letters.newest = list(newest)
    return letters


async def read_letter(settings: Settings, dead_topic: str, partition: int, offset: int) -> Inbound:
    """The letter at an offset; raises TopicsError where there is none."""
    topic = source_topic(dead_topic).dead_letters
    chunks = read_chunks(settings, topic, offset, offset + 1, lambda done, total: None)
    async with aclosing(chunks):
        async for records in chunks:
            for record in records:
                if (record.partition, record.offset) == (partition, offset):
                    return record
    raise TopicsError(f"{dead_topic}/{partition} has no letter at offset {offset}")


def describe(letter: Inbound, redriven: Redriven | None = None) -> Described:
    """What the pipeline wrote about a letter."""
    headers = dict(letter.headers)
    texts = {name: printable((headers.get(name) or b"").decode(errors="replace")) for name in DESCRIBED}
    reason = reason_of(letter.headers)
    before, left = (redriven or {}).get((reason, letter.partition), (0, []))
    written = None
    with suppress(ValueError):
        written = letter.time
    return Described(
        letter.topic, letter.partition, letter.offset, written,
        stage=texts["pv-stage"],
        reason=reason,
        detail=texts["pv-detail"],
        release=texts["pv-release"],
        source=f"{texts['pv-topic']}/{texts['pv-partition']}@{texts['pv-offset']}",
        attempts=attempts_of(letter.headers),
        bytes=len(letter.value or b""),
        waiting=letter.offset >= before or hold(left, letter.offset),
    )  # fmt: skip


def printable(text: str) -> str:
    """The text with its control characters escaped, so that it cannot command a terminal."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


async def _redriven(settings: Settings, dead_topic: str) -> Redriven:
    name = broker_name(settings, dead_topic)
    async with admin_client(settings) as admin:
        (described,) = await admin.describe_topics([name])
        partitions = [TopicPartition(name, p["partition"]) for p in described["partitions"]]
        found: Redriven = {}
        for reason in REASONS:
            offsets = await committed_metadata(admin, redrive_group(settings, reason), partitions)
            found |= {(reason, tp.partition): (offset, read(left)) for tp, (offset, left) in offsets.items()}
    return found
