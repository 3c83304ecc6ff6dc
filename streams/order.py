"""The order of the records under one key, and the upsert that keeps the latest one of each key.

The order in the topic is not enough: a worker that was suspended for longer than its session may send old
results after another worker has sent new ones. The place of the source record decides, not the arrival.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Generic, Literal, TypeVar

from models.types import JUDGE, TASKS
from streams.codec import decode
from streams.records import Headers, Inbound, Origin, Report
from streams.topics import INPUTS, Topic

V = TypeVar("V")
Verdict = Literal["newer", "repeated", "stale"]
#: Headers of a tombstone, set by the first stage: `topic/partition/offset` and time of the source record.
ORIGIN, RECEIVED_AT = "origin", "received-at"
#: Deleted keys that the upsert remembers. A stale record arrives at most about a session and a batch late, in
#: which far fewer keys are deleted.
DELETIONS = 100_000
#: Kafka's offsets are below this, and so are the numbers of a store.
OFFSETS = 2**63


@dataclass(frozen=True, slots=True)
class Revision:
    """Where a record stands among those of its key."""

    origin: Origin | None = None
    generations: tuple[int, ...] = (0,) * len(TASKS)
    """Of the releases, in the order of the stages; 0 for a stage that had no part in it. That of a judge
    follows where one was announced.
    """
    received_at: datetime | None = None
    releases: frozenset[tuple[str, str]] = frozenset()
    """Stage and release version."""
    deletes: bool = field(default=False, compare=False)
    """Whether the record is a tombstone."""

    def against(self, kept: Revision) -> Verdict:
        """Whether this record replaces the kept one.

        Of two records from one partition of one topic the one with the later source record is newer, and of
        two results of one source record that of the later generations. Otherwise the offsets cannot be
        compared (an older version wrote no origin, or the key moved because partitions were added), so the
        one received later is newer, and where that is equal or unknown the one that arrives later. That one
        is newer too where generations are equal but releases are not: none of them was announced.

        But a deletion in another partition of the topic wins over a record with a value, whatever the times
        are: producers set them, and their clocks differ.
        """
        own, other = self.origin, kept.origin
        if own and other and (own.topic, own.partition) == (other.topic, other.partition):
            new, old = (own.offset, self.generations), (other.offset, kept.generations)
            if new == old:
                return "repeated" if self.releases == kept.releases else "newer"
            return "newer" if new > old else "stale"
        if self.deletes != kept.deletes and _may_have_moved(own, other):
            if self.deletes:
                return "newer"
            if own and other:
                return "stale"
        if self.received_at is not None and kept.received_at is not None:
            return "stale" if self.received_at < kept.received_at else "newer"
        return "newer"


def _may_have_moved(one: Origin | None, other: Origin | None) -> bool:
    """Whether two records of one key may be in different partitions because partitions were added; an older
    version wrote no origin.
    """
    return one is None or other is None or one.topic == other.topic


def revision_of(record: Report) -> Revision:
    """The revision of a record that a stage wrote."""
    generations = tuple(record.generations.get(stage, 0) for stage in TASKS)
    if judge := record.generations.get(JUDGE, 0):
        # Last, and only where there is any: the revisions that stores have kept have none.
        generations += (judge,)
    return Revision(record.origin, generations, record.received_at, frozenset(record.releases.items()))


def read_revision(topic: Topic[Any], message: Inbound) -> Revision:
    """The revision of any message that has a key; raises BadRecord. A message on a topic that no stage writes
    is its own source record.
    """
    if topic in INPUTS or topic.record is None or not issubclass(topic.record, Report):
        return Revision(own_origin(message), received_at=_time(message), deletes=message.value is None)
    if message.value is None:
        return _revision_in(message.headers)
    return revision_of(decode(topic.record, message.value))


def own_origin(record: Inbound) -> Origin:
    """The origin of what is made from a record of an input topic."""
    return Origin(record.topic, record.partition, record.offset)


def tombstone_headers(topic: Topic[Any], record: Inbound) -> Headers:
    """The headers with which a stage passes on a tombstone of its source topic. On an input topic, what the
    producer wrote there is ignored.
    """
    if topic not in INPUTS:
        return [h for h in record.headers if h[0] in {ORIGIN, RECEIVED_AT}]
    headers = [(ORIGIN, f"{record.topic}/{record.partition}/{record.offset}".encode())]
    if received := _time(record):
        headers.append((RECEIVED_AT, received.isoformat().encode()))
    return headers


class Latest(Generic[V]):
    """The upsert: keeps the latest value of each key, whatever order the records arrive in.

    The revisions of the keys deleted last are kept, so that a stale record cannot bring a value back. An
    older deletion is forgotten, so that the memory for deletions is bounded.
    """

    def __init__(self, deletions: int = DELETIONS) -> None:
        """`deletions`: how many deleted keys are kept, about 1 kB each."""
        self._kept: dict[Hashable, tuple[Revision, V]] = {}
        self._deleted: dict[Hashable, Revision] = {}
        self._deletions = deletions

    def offer(self, key: Hashable, revision: Revision, value: V | None) -> Verdict:
        """Keeps the value if it is newer than the kept one; None deletes the key."""
        known = self._kept[key][0] if key in self._kept else self._deleted.get(key)
        verdict = "newer" if known is None else revision.against(known)
        if verdict == "newer":
            # To the end, so that the values are in the order of their last change.
            self._kept.pop(key, None)
            self._deleted.pop(key, None)
            if value is not None:
                self._kept[key] = revision, value
            else:
                self._delete(key, revision)
        return verdict

    def items(self) -> Iterator[tuple[Hashable, V]]:
        """The keys that are not deleted and their values, in the order of their last change."""
        return ((key, value) for key, (_, value) in self._kept.items())

    def _delete(self, key: Hashable, revision: Revision) -> None:
        self._deleted[key] = revision
        if len(self._deleted) > self._deletions:
            del self._deleted[next(iter(self._deleted))]


def _revision_in(headers: Headers) -> Revision:
    """The revision of a tombstone, as far as its headers state it."""
    texts: Mapping[str, str] = {name: (text or b"").decode(errors="replace") for name, text in headers}
    origin, received = None, None
    with suppress(ValueError):
        origin = _origin_in(texts.get(ORIGIN, ""))
    with suppress(ValueError, OverflowError):
        received = datetime.fromisoformat(texts.get(RECEIVED_AT, "")).astimezone(UTC)
    return Revision(origin, received_at=received, deletes=True)


def _origin_in(text: str) -> Origin:
    """From `topic/partition/offset`; raises ValueError."""
    topic, partition, offset = text.split("/")
    origin = Origin(topic, int(partition), int(offset))
    if not (0 <= origin.partition < OFFSETS and 0 <= origin.offset < OFFSETS):
        raise ValueError("no place in a topic")
    return origin


def _time(record: Inbound) -> datetime | None:
    """The broker's timestamp, or None where there is none, or one outside of the calendar."""
    with suppress(ValueError):
        return record.time
    return None
