"""What redrives have done with the letters of a reason, kept by the broker as offsets of a consumer group.

All letters before an offset were looked at. Those that were left, because they were outdated or their number
of attempts was used up, are named by the metadata of the offset: a run with other options may send them.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

from aiokafka import TopicPartition

from streams.broker.consumer import kafka_consumer, running_client
from streams.broker.groups import committed_metadata
from streams.settings import Settings

log = logging.getLogger(__name__)
Ranges = list[tuple[int, int]]
"""Offsets from a first one (inclusive) to another (exclusive), in their order."""
#: Characters of the metadata of an offset. Kafka accepts 4,096 bytes (`offset.metadata.max.bytes`).
MAX_METADATA = 4000
_METADATA = re.compile(r"([0-9]{1,18}\+[0-9]{1,18}( [0-9]{1,18}\+[0-9]{1,18})*)?")


def written(ranges: Iterable[tuple[int, int]]) -> str:
    """The ranges as metadata: of each the distance from the one before, and the length. What does not fit is
    left out, from the end.
    """
    parts, end = [], 0
    for start, stop in ranges:
        parts.append(f"{start - end}+{stop - start}")
        end = stop
    text = " ".join(parts)
    if len(text) > MAX_METADATA:
        text = text[: text.rindex(" ", 0, MAX_METADATA + 1)]
        log.warning(
            "%d ranges of letters that were left are not remembered", len(parts) - text.count(" ") - 1
        )
    return text


def read(metadata: str | None) -> Ranges:
    """The opposite of `written`; empty for metadata of others, and for none, as brokers may send it."""
    metadata, ranges, end = metadata or "", [], 0
    for part in metadata.split() if _METADATA.fullmatch(metadata) else ():
        distance, length = map(int, part.split("+"))
        ranges.append((end + distance, end + distance + length))
        end += distance + length
    return ranges


def hold(ranges: Iterable[tuple[int, int]], offset: int) -> bool:
    """Whether an offset is in one of the ranges."""
    return any(start <= offset < stop for start, stop in ranges)


class SentOffsets:
    """The committed offsets of one reason, and what was left before them. A range of `left` may hold letters
    of other reasons too, and such as can never be sent.
    """

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer
        self.offsets: dict[Any, int] = {}
        self.left: dict[Any, Ranges] = {}
        self._extends: set[Any] = set()
        """Partitions of which the last letter of this reason was left by this run."""

    @classmethod
    async def open(
        cls, settings: Settings, admin: Any, group: str, partitions: Sequence[Any], stack: AsyncExitStack
    ) -> SentOffsets:
        consumer = kafka_consumer(settings, group_id=group, enable_auto_commit=False)
        await stack.enter_async_context(running_client(consumer))
        consumer.assign(partitions)
        consumer.pause(*partitions)  # it only commits, and must not fetch
        sent = cls(consumer)
        for tp, (offset, metadata) in (await committed_metadata(admin, group, partitions)).items():
            sent.offsets[tp], sent.left[tp] = offset, read(metadata)
        return sent

    def drop_expired(self, beginnings: Mapping[Any, int]) -> None:
        """Forgets what was left before the first letters that the topic still has."""
        self.left = {
            tp: [(max(start, beginnings[tp]), stop) for start, stop in ranges if stop > beginnings[tp]]
            for tp, ranges in self.left.items()
        }

    def first(self, tp: TopicPartition, *, with_left: bool) -> int:
        """The offset of the first letter that a run has to look at."""
        ranges = self.left[tp] if with_left else []
        return min([self.offsets[tp], *(start for start, _ in ranges)])

    def waits(self, tp: TopicPartition, offset: int, *, with_left: bool) -> bool:
        """Whether the letter is one to look at."""
        return offset >= self.offsets[tp] or (with_left and hold(self.left[tp], offset))

    def leave(self, tp: TopicPartition, offset: int) -> None:
        """The letter is not sent by this run."""
        ranges = self.left[tp]
        if hold(ranges, offset):
            return
        start = ranges.pop()[0] if tp in self._extends else offset
        ranges.append((start, offset + 1))
        self._extends.add(tp)

    def take(self, tp: TopicPartition, offset: int) -> None:
        """The letter is sent."""
        self._extends.discard(tp)
        parts = [
            part
            for start, stop in self.left[tp]
            for part in (
                ((start, offset), (offset + 1, stop)) if start <= offset < stop else ((start, stop),)
            )
        ]
        self.left[tp] = [part for part in parts if part[0] < part[1]]

    async def commit(self, offsets: Mapping[Any, int]) -> None:
        """Commits the offsets, but never lowers one: an earlier run for this reason alone may be further."""
        self.offsets |= {tp: max(offset, self.offsets[tp]) for tp, offset in offsets.items()}
        await self._consumer.commit(
            {tp: (offset, written(self.left[tp])) for tp, offset in self.offsets.items()}
        )
