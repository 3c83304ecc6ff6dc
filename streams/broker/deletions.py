"""Which reports of a topic were deleted or replaced, from the records of their keys that follow them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
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
    """The tombstones of some keys, the last version of each in a partition, and from where on the topic still
    has all records.
    """

    def __init__(
        self,
        tombstones: Mapping[bytes, Sequence[Place]],
        beginnings: Mapping[int, int],
        versions: Mapping[tuple[bytes, int], int] | None = None,
    ) -> None:
        """`versions`: key and partition to the offset of the last record with a value."""
        self._tombstones = tombstones
        self._beginnings = beginnings
        self._versions = versions or {}

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
    """What follows reports, keys and places on the topic. Raises TopicsError where the broker lacks the
    topic.
    """
    keys = {key for key, _ in reports}
    tombstones: dict[bytes, list[Place]] = {}
    versions: dict[tuple[bytes, int], int] = {}
    beginnings = await _beginnings(settings, topic)
    if keys:
        start = _start(reports, sorted(beginnings))
        async for records in read_chunks(settings, topic, start, "end", lambda done, total: None):
            for record in records:
                if record.key is None or record.key not in keys:
                    continue
                if record.value is None:
                    tombstones.setdefault(record.key, []).append(Place(record.partition, record.offset))
                else:
                    versions[record.key, record.partition] = record.offset
    return Deletions(tombstones, beginnings, versions)


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
