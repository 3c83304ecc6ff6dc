"""The lag of a worker's partitions and its dead letters, as the broker knows them.

The worker's own consumer knows only what it has fetched, and a stage that stands still fetches nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any, Protocol

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from streams import metrics
from streams.broker.consumer import kafka_consumer
from streams.dead_letters.headers import describe_error
from streams.monitoring.backlog import dead_letters_waiting
from streams.monitoring.progress import Progress
from streams.settings import Settings

log = logging.getLogger(__name__)
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
    dead_letters: str
    """The name of its dead-letter topic."""

    def acknowledged(self) -> Mapping[TopicPartition, int]:
        """For each assigned partition the offset behind the acknowledged records; 0 without any."""

    def has_read_all(self, partition: TopicPartition, end: int) -> bool:
        """Whether everything before `end` is fetched and acknowledged."""


class LagWatch:
    """`run` asks the broker; `observe` sets the gauges from the last answers and may be called any time."""

    def __init__(self, settings: Settings, readers: Sequence[Reader]) -> None:
        self._settings = settings
        self._readers = readers
        self._failed = False
        self._bounds: dict[TopicPartition, tuple[int, int]] = {}
        """Partition to its first offset and its end."""
        self._oldest: dict[TopicPartition, tuple[int, float]] = {}
        """Partition to the offset from which its oldest record was read, and that record's timestamp."""

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
            admin = AIOKafkaAdminClient(**self._settings.client())
            stack.push_async_callback(consumer.stop)
            await consumer.start()
            stack.push_async_callback(admin.close)
            await admin.start()
            backlog_at = 0.0
            while True:
                async with asyncio.timeout(TIMEOUT_SECONDS):
                    await self._ask(consumer)
                    if time.monotonic() >= backlog_at:
                        backlog_at = time.monotonic() + BACKLOG_SECONDS
                        names = [r.dead_letters for r in self._readers]
                        for topic, n in (await dead_letters_waiting(consumer, admin, names)).items():
                            metrics.WAITING.labels(topic).set(n)
                self._failed = False
                await asyncio.sleep(CHECK_SECONDS)

    async def _ask(self, consumer: Any) -> None:
        acknowledged = {
            tp: offset for reader in self._readers for tp, offset in reader.acknowledged().items()
        }
        if not acknowledged:
            return
        first = await consumer.beginning_offsets(list(acknowledged))
        ends = await consumer.end_offsets(list(acknowledged))
        self._bounds.update({tp: (first[tp], ends[tp]) for tp in acknowledged})
        starts = {tp: max(offset, first[tp]) for tp, offset in acknowledged.items()}
        unknown = {
            tp: start
            for tp, start in starts.items()
            if start < ends[tp] and self._oldest.get(tp, (-1, 0.0))[0] != start
        }
        self._oldest.update(await _timestamps(consumer, unknown))

    def observe(self) -> None:
        """Sets lag and progress of every stage."""
        for reader in self._readers:
            acknowledged = reader.acknowledged()
            lags = {tp: self._observe(reader, tp, offset) for tp, offset in acknowledged.items()}
            reader.progress.observe(acknowledged, has_lag=any(lags.values()))

    def _observe(self, reader: Reader, tp: TopicPartition, acknowledged: int) -> int:
        """Sets the gauges of a partition and returns its lag in records; 0 until the broker has answered."""
        if tp not in self._bounds:
            return 0
        first, end = self._bounds[tp]
        start = max(first, acknowledged)
        # Only markers of transactions, which no consumer is given, may follow the last record.
        lag = 0 if reader.has_read_all(tp, end) else max(0, end - start)
        labels = (reader.progress.stage, tp.topic, tp.partition)
        metrics.LAG.labels(*labels).set(lag)
        seconds = metrics.LAG_SECONDS.labels(*labels)
        oldest, timestamp = self._oldest.get(tp, (-1, 0.0))
        if lag == 0:
            seconds.set(0)
        elif oldest == start:
            seconds.set(max(0.0, time.time() - timestamp) if timestamp > 0 else 0)
        return lag


async def _timestamps(
    consumer: Any, starts: Mapping[TopicPartition, int]
) -> dict[TopicPartition, tuple[int, float]]:
    """For each partition the offset where reading starts, and the timestamp of the first record from there on
    in seconds since 1970. A partition from which none arrives in time is left out.
    """
    found: dict[TopicPartition, tuple[int, float]] = {}
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
                found[tp] = (starts[tp], message.timestamp / 1000)
                consumer.pause(tp)
    consumer.pause(*starts)  # not unsubscribed: aiokafka's fetcher fails where that follows soon
    return found
