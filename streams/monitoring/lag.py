"""The lag of a worker's partitions and its dead letters, from the offsets on the broker.

The worker's own consumer knows only what it has fetched, and a stage that stands still fetches nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any, NamedTuple, Protocol

from aiokafka import TopicPartition

from streams import metrics
from streams.broker.consumer import kafka_consumer, running_client
from streams.broker.groups import committed_offsets
from streams.dead_letters.headers import describe_error
from streams.dead_letters.redrive import REASONS, redrive_group
from streams.monitoring.progress import Progress
from streams.settings import Settings
from streams.topics import admin_client, broker_name, table_name

log = logging.getLogger(__name__)


async def dead_letters_waiting(
    settings: Settings, consumer: Any, admin: Any, topics: Sequence[str]
) -> dict[str, int]:
    """Topic of the table to the number of its letters behind the last redrive of every reason.

    A redrive for one reason alone does not lower it, because the letters are not read.
    """
    described = await admin.describe_topics([broker_name(settings, topic) for topic in topics])
    partitions = [TopicPartition(t["topic"], p["partition"]) for t in described for p in t["partitions"]]
    first, ends = await consumer.beginning_offsets(partitions), await consumer.end_offsets(partitions)
    redriven = [
        await committed_offsets(admin, redrive_group(settings, reason), partitions) for reason in REASONS
    ]
    waiting = dict.fromkeys(topics, 0)
    for tp in partitions:
        done = min(offsets[tp] for offsets in redriven)
        waiting[table_name(settings, tp.topic)] += max(0, ends[tp] - max(first[tp], done))
    return waiting


#: Seconds between two requests for the ends of the partitions.
CHECK_SECONDS = 3.0
#: Seconds between two requests for the dead letters.
BACKLOG_SECONDS = 10.0
#: Seconds that all requests of one check may take.
TIMEOUT_SECONDS = 10.0
#: Seconds to wait for the oldest records: where only markers of transactions follow, none arrives.
READ_SECONDS = 2.0
#: Only the first record of a partition is wanted.
FETCH_BYTES = 64 * 1024


class Reader(Protocol):
    """A stage that reads partitions."""

    progress: Progress

    @property
    def dead_letters(self) -> Sequence[str]:
        """The names of its dead-letter topics."""

    def acknowledged(self) -> Mapping[TopicPartition, int]:
        """For each assigned partition the offset behind the acknowledged records; 0 without any."""

    def has_read_all(self, partition: TopicPartition, end: int) -> bool:
        """Whether everything before `end` is fetched and acknowledged."""


class Oldest(NamedTuple):
    """The oldest record of a partition that was not acknowledged when it was read."""

    start: int
    """The offset from which it was read."""
    timestamp: float
    """Of the record, in seconds since 1970; whatever its producer has set."""
    read_at: float

    def age(self, start: int) -> float:
        """The record's age in seconds: now, or when it was read where another record is the oldest by now."""
        now = time.time() if start == self.start else self.read_at
        return max(0.0, now - self.timestamp) if self.timestamp > 0 else 0.0


class LagWatch:
    """`run` asks the broker; `observe` sets the gauges from the last answers and may be called any time."""

    def __init__(self, settings: Settings, readers: Sequence[Reader]) -> None:
        self._settings = settings
        self._readers = readers
        self._failed = False
        self._bounds: dict[TopicPartition, tuple[int, int]] = {}
        """Partition to its first offset and its end."""
        self._oldest: dict[TopicPartition, Oldest] = {}

    async def run(self) -> None:
        """Sends requests until cancelled. While the broker does not answer, the last answers stay."""
        while True:
            try:
                await self._follow()
            except Exception as error:
                if not self._failed:
                    log.warning("the lag is not known, trying again: %s", describe_error(error))
                self._failed = True
            await asyncio.sleep(CHECK_SECONDS)

    async def _follow(self) -> None:
        """Sends requests until one fails."""
        async with AsyncExitStack() as stack:
            consumer = kafka_consumer(
                self._settings,
                group_id=None,
                auto_offset_reset="earliest",
                max_partition_fetch_bytes=FETCH_BYTES,
            )
            await stack.enter_async_context(running_client(consumer))
            admin = await stack.enter_async_context(admin_client(self._settings))
            backlog_at = 0.0
            while True:
                async with asyncio.timeout(TIMEOUT_SECONDS):
                    await self._ask(consumer)
                    if time.monotonic() >= backlog_at:
                        backlog_at = time.monotonic() + BACKLOG_SECONDS
                        names = sorted({name for r in self._readers for name in r.dead_letters})
                        waiting = await dead_letters_waiting(self._settings, consumer, admin, names)
                        for topic, n in waiting.items():
                            metrics.WAITING.labels(topic).set(n)
                self._failed = False
                await asyncio.sleep(CHECK_SECONDS)

    async def _ask(self, consumer: Any) -> None:
        partitions = [tp for reader in self._readers for tp in reader.acknowledged()]
        if not partitions:
            return
        first, ends = await consumer.beginning_offsets(partitions), await consumer.end_offsets(partitions)
        self._bounds.update({tp: (first[tp], ends[tp]) for tp in partitions})
        unknown = {
            tp: start
            for reader in self._readers
            for tp, (start, lag) in self._lags(reader).items()
            if lag and (tp not in self._oldest or self._oldest[tp].start != start)
        }
        self._oldest.update(await read_oldest(consumer, unknown))

    def observe(self) -> None:
        """Sets lag and progress of every stage."""
        for reader in self._readers:
            lags = self._lags(reader)
            for tp, (start, lag) in lags.items():
                topic = table_name(self._settings, tp.topic)
                labels = (reader.progress.stage, topic, tp.partition)
                metrics.LAG.labels(*labels).set(lag)
                seconds = metrics.LAG_SECONDS.labels(*labels)
                if lag == 0:
                    seconds.set(0)
                elif tp in self._oldest:
                    seconds.set(self._oldest[tp].age(start))
            starts = {tp: start for tp, (start, _) in lags.items()}
            reader.progress.observe(starts, has_lag=any(lag for _, lag in lags.values()))

    def _lags(self, reader: Reader) -> dict[TopicPartition, tuple[int, int]]:
        """For each partition of a stage the offset that is acknowledged next, and its lag in records; without
        those about which the broker has not answered yet.
        """
        lags = {}
        for tp, acknowledged in reader.acknowledged().items():
            if tp in self._bounds:
                first, end = self._bounds[tp]
                start = max(first, acknowledged)
                # Only markers of transactions, which no consumer is given, may follow the last record.
                lags[tp] = start, 0 if reader.has_read_all(tp, end) else max(0, end - start)
        return lags


async def read_oldest(consumer: Any, starts: Mapping[TopicPartition, int]) -> dict[TopicPartition, Oldest]:
    """The first record of each partition from an offset on; without those from which none arrives in time."""
    found: dict[TopicPartition, Oldest] = {}
    if not starts:
        return found
    consumer.assign(list(starts))
    for tp, start in starts.items():
        consumer.seek(tp, start)
    with suppress(TimeoutError):
        async with asyncio.timeout(READ_SECONDS):
            while len(found) < len(starts):
                message = await consumer.getone(*(tp for tp in starts if tp not in found))
                tp = TopicPartition(message.topic, message.partition)
                found[tp] = Oldest(starts[tp], message.timestamp / 1000, time.time())
                consumer.pause(tp)
    consumer.pause(*starts)  # not unsubscribed: aiokafka's fetcher fails where that follows soon
    return found
