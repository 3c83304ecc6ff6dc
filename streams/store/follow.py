"""Follows the topics of results and writes them into the store, with the consumer's offsets.

The offsets are in the database and change in the transaction of the rows, so that a crash neither loses nor
doubles a record. There is no consumer group: one process reads all partitions. The ids of the topics stand
beside the offsets and are compared before anything is written, so that the offsets of one topic are never
used for another one of its name.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Any

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError, OffsetOutOfRangeError

from streams.broker.consumer import kafka_consumer, running_client
from streams.broker.patience import wait_at_start
from streams.broker.topic_ids import TopicId, topic_ids
from streams.broker.watch import BrokerWatch
from streams.order import Revision
from streams.records import Inbound
from streams.settings import Settings
from streams.stopping import before_stop
from streams.store.changes import Batch, Offsets, fold, next_offsets, read_all
from streams.store.database import Database, DatabaseAway, DatabaseBusy, DatabaseError
from streams.store.decisions import apply_decisions, read_decisions
from streams.store.open_database import open_database
from streams.store.repeats import join_repeats
from streams.store.same_topics import others_of, refusal, start_of
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

    def __init__(self, settings: Settings, database: Database, *, accept_topics: bool = False) -> None:
        """With `accept_topics` topics that are not those of the database's offsets are read from their
        beginning; else they are refused.
        """
        self.counts: Counter[str] = Counter()
        self._settings = settings
        self._database = database
        self._accept_topics = accept_topics
        self._topics: Mapping[str, TopicId] = {}
        """Of the database."""
        self._released_at = 0.0
        self._is_to_seek = False
        """Whether to go back to the places of the database: a topic does not have the message that is to be
        read next, or messages that were read could not be written.
        """

    async def run(self, stop: asyncio.Event, *, until_end: bool = False) -> None:
        """Until `stop` is set or, with `until_end`, up to the present end of the topics. What was read is
        written before this ends. Without `until_end` it waits for a broker that is away. Raises TopicsError,
        DatabaseError and KafkaError.
        """
        consumer = kafka_consumer(
            self._settings, group_id=None, enable_auto_commit=False, max_partition_fetch_bytes=FETCH_BYTES,
            # Not aiokafka's "latest", which passes over what a topic still has.
            auto_offset_reset="none",
        )  # fmt: skip
        try:
            async with AsyncExitStack() as stack:
                if await before_stop(stop, self._connect(stack, consumer, is_patient=not until_end)):
                    await self._follow(consumer, stop, until_end=until_end)
        finally:
            await asyncio.to_thread(self._database.release)

    async def _connect(self, stack: AsyncExitStack, consumer: Any, *, is_patient: bool) -> bool:
        have_topics = partial(require, self._settings, FOLLOWED)
        if is_patient:
            await BrokerWatch(self._settings).until_answered(have_topics)
            wait_at_start(consumer._client)
        else:
            await have_topics()
        await stack.enter_async_context(running_client(consumer))
        return True

    async def _follow(self, consumer: Any, stop: asyncio.Event, *, until_end: bool) -> None:
        ends: Mapping[TopicPartition, int] = {}
        try:
            ends = await self._assign(consumer)
        except (KafkaError, TimeoutError):
            if until_end:
                raise
            self._is_to_seek = True
        looked_at = time.monotonic()
        while not stop.is_set():
            try:
                if self._is_to_seek or time.monotonic() - looked_at > LOOK:
                    looked_at = time.monotonic()
                    # A broker that is away is waited for.
                    with suppress(KafkaError, TimeoutError):
                        await self._assign(consumer)
                messages = await self._fetch(consumer, stop)
                # After the fetch: a topic may have been created again since the last look.
                if messages and await self._are_same(consumer):
                    await self._write(messages, stop)
                await self._release(idle=not messages)
            except (DatabaseAway, DatabaseBusy) as error:
                await self._wait(error, stop)
                continue
            # What was read and could not be written is read again.
            if until_end and not self._is_to_seek and await _has_reached(consumer, ends):
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
        read, unreadable = read_all([m for m in messages if m.topic != REVIEWS.name])
        stored: dict[tuple[str, str], Revision] = {}
        for table in {m.table.name: m.table for m in read}.values():
            stored |= self._database.revisions(table, [m.id for m in read if m.table is table])
        batch = fold(read, stored)
        decisions, unreadable_decisions = read_decisions([m for m in messages if m.topic == REVIEWS.name])
        unreadable += unreadable_decisions
        apply_decisions(self._database, batch, decisions)
        join_repeats(self._database, batch)
        batch.offsets = next_offsets(messages)
        self._database.write(batch)
        self.counts.update(
            messages=len(messages), written=len(batch.rows.reports) + len(batch.rows.summaries),
            stale=batch.stale, repeated=batch.repeated, unreadable=unreadable,
        )  # fmt: skip

    async def _assign(self, consumer: Any) -> Mapping[TopicPartition, int]:
        """Assigns all partitions at the offsets of the database; returns their present ends. Raises
        TopicsError where these are not the topics of the offsets.
        """
        counts = await partition_counts(self._settings)
        if missing := [topic.name for topic in FOLLOWED if topic.name not in counts]:
            raise TopicsError(f"the broker does not have {', '.join(missing)} any more")
        partitions = [
            TopicPartition(broker_name(self._settings, topic.name), p)
            for topic in FOLLOWED
            for p in range(counts[topic.name])
        ]
        ends: Mapping[TopicPartition, int] = await consumer.end_offsets(partitions)
        if set(partitions) == consumer.assignment() and not self._is_to_seek:
            return ends
        ids = await self._topic_ids(consumer)
        offsets = await asyncio.to_thread(self._stored_offsets, ids)
        first = await consumer.beginning_offsets(partitions)
        starts = {}
        for tp in partitions:
            place = table_name(self._settings, tp.topic), tp.partition
            before = offsets.get(place)
            if before is not None and before > ends[tp] and self._accept_topics:
                before = None
            starts[tp] = start_of(place, before, first[tp], ends[tp])
        await asyncio.to_thread(self._keep, ids)
        self._accept_topics = False
        consumer.assign(partitions)
        for tp, start in starts.items():
            consumer.seek(tp, start)
        self._is_to_seek = False
        return ends

    async def _topic_ids(self, consumer: Any) -> dict[str, TopicId]:
        """The ids of the topics that the broker has, by their names in the table."""
        names = [broker_name(self._settings, topic.name) for topic in FOLLOWED]
        ids = await topic_ids(consumer._client, names)
        return {table_name(self._settings, name): id_ for name, id_ in ids.items()}

    def _stored_offsets(self, ids: Mapping[str, TopicId]) -> Offsets:
        """The offsets of the database; raises TopicsError where they are of other topics."""
        offsets = self._database.offsets()
        self._topics = self._database.topics()
        changed = others_of(self._topics, ids)
        if changed and not self._accept_topics:
            raise TopicsError(refusal(changed[0], self._topics, ids))
        if changed:
            log.warning(
                "%s: other topics than before, which are read from their beginning", ", ".join(changed)
            )
            anew = {place: 0 for place in offsets if place[0] in changed}
            self._database.write(Batch(offsets=anew, topics={name: ids[name] for name in changed}))
            self._topics, offsets = self._database.topics(), self._database.offsets()
        return offsets

    def _keep(self, ids: Mapping[str, TopicId]) -> None:
        """Keeps the ids of topics of which the database has none: it is new, or of an earlier version."""
        if new := {name: id_ for name, id_ in ids.items() if name not in self._topics}:
            self._database.write(Batch(topics=new))
            self._topics = {**self._topics, **new}

    async def _are_same(self, consumer: Any) -> bool:
        """Whether the broker has the topics of the database's offsets. If not, or where it does not answer,
        what was read is left, and it is looked again.
        """
        try:
            ids = await self._topic_ids(consumer)
            are_same = self._topics.keys() <= ids.keys() and not others_of(self._topics, ids)
        except (KafkaError, TimeoutError):
            are_same = False
        self._is_to_seek = self._is_to_seek or not are_same
        return are_same

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


async def _has_reached(consumer: Any, ends: Mapping[TopicPartition, int]) -> bool:
    """Whether everything before the ends was delivered."""
    return all([await consumer.position(tp) >= end for tp, end in ends.items()])
