"""Follows the topics of results and writes them into the store, with the consumer's offsets.

The offsets are in the database and change in the transaction of the rows, so that a crash neither loses nor
doubles a record. There is no consumer group: one process reads all partitions.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError, OffsetOutOfRangeError

from streams.broker.consumer import kafka_consumer, running_client
from streams.records import Inbound
from streams.settings import Settings
from streams.store.batches import fold, next_offsets, read_all
from streams.store.database import Database, DatabaseAway, DatabaseBusy, DatabaseError, open_database
from streams.store.decisions import apply_decisions, read_decisions
from streams.topics import (
    EVENTS,
    REVIEWS,
    SUMMARIES,
    TopicsError,
    broker_name,
    partition_counts,
    require,
    table_name,
)

log = logging.getLogger(__name__)
FOLLOWED = (EVENTS, SUMMARIES, REVIEWS)
#: Messages of a transaction, and the seconds for which it waits to have so many.
BATCH = 5000
WAIT = 0.5
#: Seconds between two moments at which others may open a database that only one process can.
HOLD = 1.0
#: Seconds between two looks for new partitions, and between two attempts while the database is away.
LOOK, AWAY = 60.0, 2.0
POLL_MS = 200
FETCH_BYTES = 4 << 20


class Follower:
    """One run; `counts` has the numbers of messages, written, stale, repeated and unreadable."""

    def __init__(self, settings: Settings, database: Database) -> None:
        self.counts: Counter[str] = Counter()
        self._settings = settings
        self._database = database
        self._released_at = 0.0
        self._is_to_seek = False
        """Whether to go back to the places of the database: a topic does not have the message that is to be
        read next, or messages that were read could not be written.
        """

    async def run(self, stop: asyncio.Event, *, until_end: bool = False) -> None:
        """Until `stop` is set or, with `until_end`, up to the present end of the topics. What was read is
        written before this ends. Raises TopicsError and DatabaseError.
        """
        await require(self._settings, FOLLOWED)
        consumer = kafka_consumer(
            self._settings, group_id=None, enable_auto_commit=False, max_partition_fetch_bytes=FETCH_BYTES,
            # Not aiokafka's "latest", which passes over what a topic still has.
            auto_offset_reset="none",
        )  # fmt: skip
        try:
            async with running_client(consumer):
                await self._follow(consumer, stop, until_end=until_end)
        finally:
            await asyncio.to_thread(self._database.release)

    async def _follow(self, consumer: Any, stop: asyncio.Event, *, until_end: bool) -> None:
        ends = await self._assign(consumer)
        looked_at = time.monotonic()
        while not stop.is_set():
            try:
                if self._is_to_seek or time.monotonic() - looked_at > LOOK:
                    looked_at = time.monotonic()
                    # A broker that is away is waited for.
                    with suppress(KafkaError, TimeoutError):
                        await self._assign(consumer)
                messages = await self._fetch(consumer, stop)
                if messages:
                    await self._write(messages, stop)
                await self._release(idle=not messages)
            except (DatabaseAway, DatabaseBusy) as error:
                await self._wait(error, stop)
                continue
            if until_end and await _has_reached(consumer, ends):
                break

    async def _wait(self, error: DatabaseError, stop: asyncio.Event) -> None:
        """Waits before the next attempt. What was read is read again then, from the place that the database
        has: it may be another server by then, which lacks the last transactions. Raises the error where the
        process is to end.
        """
        if not self._is_to_seek:
            log.warning("the database is waited for: %s", error)
        self._is_to_seek = True
        with suppress(TimeoutError):
            async with asyncio.timeout(AWAY):
                await stop.wait()
        if stop.is_set():
            raise error

    async def _write(self, messages: Sequence[Inbound], stop: asyncio.Event) -> None:
        """Waits for readers of a database that only one process can have open, as long as they take."""
        while True:
            try:
                await asyncio.to_thread(self.apply, messages)
                return
            except DatabaseBusy as error:
                if stop.is_set():
                    raise
                log.warning("%d messages wait for a reader of the database: %s", len(messages), error)

    def apply(self, messages: Sequence[Inbound]) -> None:
        """Writes the messages in one transaction."""
        found, unreadable = read_all([m for m in messages if m.topic != REVIEWS.name])
        batch = fold(found, self._database.revisions([one.id for one in found]))
        decisions, unreadable_decisions = read_decisions([m for m in messages if m.topic == REVIEWS.name])
        unreadable += unreadable_decisions
        apply_decisions(self._database, batch, decisions)
        batch.offsets = next_offsets(messages)
        self._database.write(batch)
        self.counts.update(
            messages=len(messages), written=len(batch.rows.reports), stale=batch.stale,
            repeated=batch.repeated, unreadable=unreadable,
        )  # fmt: skip

    async def _assign(self, consumer: Any) -> Mapping[TopicPartition, int]:
        """Assigns all partitions at the offsets of the database; returns their present ends."""
        counts = await partition_counts(self._settings)
        partitions = [
            TopicPartition(broker_name(self._settings, topic.name), p)
            for topic in FOLLOWED
            for p in range(counts[topic.name])
        ]
        ends: Mapping[TopicPartition, int] = await consumer.end_offsets(partitions)
        if set(partitions) == consumer.assignment() and not self._is_to_seek:
            return ends
        kept = await asyncio.to_thread(self._database.offsets)
        first = await consumer.beginning_offsets(partitions)
        consumer.assign(partitions)
        for tp in partitions:
            place = table_name(self._settings, tp.topic), tp.partition
            consumer.seek(tp, _start(place, kept.get(place), first[tp], ends[tp]))
        self._is_to_seek = False
        return ends

    async def _fetch(self, consumer: Any, stop: asyncio.Event) -> list[Inbound]:
        """The next messages: as many as a transaction has, or what comes within WAIT. None from another place
        than that of the database.
        """
        if self._is_to_seek:
            await asyncio.sleep(WAIT)
            return []
        messages: list[Inbound] = []
        end = time.monotonic() + WAIT
        while len(messages) < BATCH and time.monotonic() < end and not stop.is_set():
            try:
                fetched = await consumer.getmany(timeout_ms=POLL_MS, max_records=BATCH - len(messages))
            except OffsetOutOfRangeError:
                self._is_to_seek = True
                break
            messages += [self._inbound(m) for batch in fetched.values() for m in batch]
        return messages

    async def _release(self, *, idle: bool) -> None:
        if idle or time.monotonic() - self._released_at > HOLD:
            await asyncio.to_thread(self._database.release)
            self._released_at = time.monotonic()

    def _inbound(self, m: Any) -> Inbound:
        topic = table_name(self._settings, m.topic)
        return Inbound(topic, m.partition, m.offset, m.key, m.value, m.timestamp / 1000, tuple(m.headers))


@asynccontextmanager
async def following(settings: Settings) -> AsyncIterator[asyncio.Task[None]]:
    """Follows the topics for the time of the block, in a task that ends only where it fails. Raises
    DatabaseError and TopicsError.
    """
    database, stop = await asyncio.to_thread(open_database, settings, write=True), asyncio.Event()
    task = asyncio.create_task(Follower(settings, database).run(stop))
    try:
        yield task
    finally:
        stop.set()
        try:
            await task
        finally:
            database.close()


def _start(place: tuple[str, int], kept: int | None, first: int, end: int) -> int:
    """The offset to continue from; raises TopicsError where the topic is not the one of the stored offset."""
    name = f"{place[0]}/{place[1]}"
    if kept is None:
        return first
    if kept > end:
        raise TopicsError(
            f"the database has read {name} up to {kept}, but it ends at {end}: the topic was created again. "
            "Use a new database for it"
        )
    if kept < first:
        log.warning("%s: %d messages were removed from the topic before they were read", name, first - kept)
    return max(kept, first)


async def _has_reached(consumer: Any, ends: Mapping[TopicPartition, int]) -> bool:
    """Whether everything before the ends was delivered."""
    return all([await consumer.position(tp) >= end for tp, end in ends.items()])
