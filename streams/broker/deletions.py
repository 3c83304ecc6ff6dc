"""Which reports of a topic were deleted or replaced, from the records of their keys that follow them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from aiokafka import TopicPartition
from aiokafka.partitioner import DefaultPartitioner

from streams.broker.consumer import kafka_consumer, running_client
from streams.broker.ranges import read_chunks
from streams.settings import Settings
from streams.topics import Topic, broker_name, partition_counts


class Place(NamedTuple):
    """Of a record in a topic."""

    partition: int
    offset: int


class Deletions:
    """Tombstones and last versions of some keys, and from where on the topic has all records."""

    def __init__(self, keys: Collection[bytes], beginnings: Mapping[int, int], start: int = 0) -> None:
        """`start`: the first offset at which a record of the keys may be."""
        self._keys = frozenset(keys)
        self._beginnings = beginnings
        self._reached: dict[int, int] = dict.fromkeys(beginnings, start)
        """The offset of each partition up to which it was read."""
        self._tombstones: dict[bytes, list[Place]] = {}
        self._versions: dict[tuple[bytes, int], int] = {}
        """Key and partition to the offset of the last record with a value."""

    async def read_on(self, settings: Settings, topic: Topic[Any]) -> None:
        """Reads what has come since the last call."""
        if not self._keys:
            return
        chunks = read_chunks(settings, topic, dict(self._reached), "end", lambda done, total: None)
        async for records in chunks:
            for record in records:
                self._reached[record.partition] = record.offset + 1
                if record.key not in self._keys:
                    continue
                if record.value is None:
                    place = Place(record.partition, record.offset)
                    self._tombstones.setdefault(record.key, []).append(place)
                else:
                    self._versions[record.key, record.partition] = record.offset

    def follow(self, key: bytes, place: Place) -> bool:
        """Whether the record at a place was deleted later. A tombstone in another partition counts: the key
        has moved, because partitions were added.
        """
        return any(
            tombstone.partition != place.partition or tombstone.offset > place.offset
            for tombstone in self._tombstones.get(key, ())
        )

    def replace(self, key: bytes, place: Place) -> bool:
        """Whether a later version of the record at a place is in its partition."""
        return self._versions.get((key, place.partition), -1) > place.offset

    def are_unknown(self, place: Place) -> bool:
        """Whether records behind the place are no longer in the topic, among them perhaps a tombstone."""
        return place.offset < self._beginnings.get(place.partition, 0)


async def read_deletions(
    settings: Settings, topic: Topic[Any], reports: Collection[tuple[bytes, Place]]
) -> Deletions:
    """What follows reports, keys and places on the topic. Raises TopicsError where that is missing."""
    beginnings = await _beginnings(settings, topic)
    start = _start(reports, sorted(beginnings)) if reports else 0
    found = Deletions({key for key, _ in reports}, beginnings, start)
    await found.read_on(settings, topic)
    return found


def _start(reports: Collection[tuple[bytes, Place]], partitions: list[int]) -> int:
    """The first offset at which a tombstone of the reports may be: any, where a report is in another
    partition than its key belongs to now, because partitions were added.
    """
    belongs = DefaultPartitioner()
    if any(belongs(key, partitions, partitions) != place.partition for key, place in reports):
        return 0
    return min(place.offset for _, place in reports)


async def _beginnings(settings: Settings, topic: Topic[Any]) -> dict[int, int]:
    """The first offset of each partition."""
    counts = await partition_counts(settings)
    partitions = [TopicPartition(broker_name(settings, topic.name), p) for p in range(counts[topic.name])]
    consumer = kafka_consumer(settings, group_id=None)
    async with running_client(consumer):
        return {tp.partition: first for tp, first in (await consumer.beginning_offsets(partitions)).items()}
