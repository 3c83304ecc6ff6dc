"""Steps over one record that a stage cannot pass, whatever is wrong with it."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any

from aiokafka import TopicPartition
from aiokafka.errors import CommitFailedError, IllegalGenerationError, UnknownMemberIdError

from streams.broker.consumer import kafka_consumer, kafka_producer, running_client
from streams.dead_letters.headers import Fault, dead_letter
from streams.records import Inbound
from streams.settings import Settings
from streams.topics import (
    MAX_DEAD_MESSAGE,
    Topic,
    TopicsError,
    broker_name,
    group_id,
    partition_counts,
    require,
)

#: Seconds to wait for the record before it is taken for unreadable.
READ_SECONDS = 15.0
#: Seconds beyond the session of a killed worker until the broker has noticed, and between two commits.
SESSION_MARGIN, COMMIT_RETRY_SECONDS = 5.0, 1.0


async def skip(settings: Settings, topic: Topic[Any], partition: int, offset: int, stage: str) -> bool:
    """Writes the record at an offset to the dead letters, as far as it can be read, and lets the stage's
    consumer group continue behind it; returns whether the record could be read.

    The present offset is committed first, which changes nothing and is refused while workers run: then there
    is no letter. The letter is confirmed before the next offset is committed, so a crash between the two
    loses nothing, but the next attempt writes a second letter. Raises TopicsError where the topic, the
    partition or the offset does not exist, where unprocessed records are before it, where the stage has
    passed it already, or while workers of the stage are running.
    """
    await require(settings, (topic, topic.dead_letters))
    partitions = (await partition_counts(settings))[topic.name]
    if partition >= partitions:  # the client would wait for it
        raise TopicsError(f"{topic.name} has no partition {partition}: it has 0 to {partitions - 1}")
    tp = TopicPartition(broker_name(settings, topic.name), partition)
    consumer = kafka_consumer(settings, group_id=group_id(settings, stage), enable_auto_commit=False)
    async with running_client(consumer):
        consumer.assign([tp])
        await _check(consumer, tp, offset)
        seconds = settings.session_timeout + SESSION_MARGIN
        await _commit(consumer, {tp: offset}, stage, seconds)
        record = replace(await _read(consumer, tp, offset), topic=topic.name)
        await _send_letter(settings, topic, record, stage)
        await _commit(consumer, {tp: offset + 1}, stage, seconds)
    return record.value is not None or record.key is not None


async def _commit(consumer: Any, offsets: dict[Any, int], stage: str, seconds: float) -> None:
    """Commits while the group has no members. A worker that was killed stays a member until its session ends,
    so this tries for some seconds; then it raises TopicsError.
    """
    end = time.monotonic() + seconds
    while True:
        try:
            await consumer.commit(offsets)
            return
        except (CommitFailedError, IllegalGenerationError, UnknownMemberIdError):
            if time.monotonic() > end:
                raise TopicsError(f"workers of the stage {stage} are running: stop them first") from None
        await asyncio.sleep(COMMIT_RETRY_SECONDS)


async def _check(consumer: Any, tp: Any, offset: int) -> None:
    """Raises TopicsError unless the record at `offset` is the next one that the group will read."""
    first = (await consumer.beginning_offsets([tp]))[tp]
    last = (await consumer.end_offsets([tp]))[tp]
    if not first <= offset < last:
        raise TopicsError(f"{tp.topic}/{tp.partition} has no offset {offset}: it holds {first} to {last - 1}")
    committed = await consumer.committed(tp)
    position = max(first, committed if committed is not None else first)
    if position > offset:
        raise TopicsError(f"the stage has passed offset {offset} already: it continues at {position}")
    if position < offset and await _next(consumer, tp, position) < offset:
        raise TopicsError(f"{offset - position} records before offset {offset} are not processed yet")


async def _next(consumer: Any, tp: Any, position: int) -> int:
    """The offset of the first record from a position on: some hold none, those of aborted transactions and of
    markers, and those that compaction has removed. The position, where what follows cannot be read.
    """
    consumer.seek(tp, position)
    try:
        return int((await asyncio.wait_for(consumer.getone(tp), READ_SECONDS)).offset)
    except Exception:
        return position


async def _read(consumer: Any, tp: Any, offset: int) -> Inbound:
    """The record, or, where it cannot be read, one without key and value in its place."""
    consumer.seek(tp, offset)
    try:
        m = await asyncio.wait_for(consumer.getone(tp), READ_SECONDS)
    except Exception:
        m = None
    if m is None or m.offset != offset:
        return Inbound(tp.topic, tp.partition, offset, None, None, 0.0)
    return Inbound(m.topic, m.partition, m.offset, m.key, m.value, m.timestamp / 1000, tuple(m.headers))


async def _send_letter(settings: Settings, topic: Topic[Any], record: Inbound, stage: str) -> None:
    letter = dead_letter(record, stage, Fault("skipped", "skipped by an operator"), "none")
    producer = kafka_producer(settings, max_request_size=2 * MAX_DEAD_MESSAGE)
    async with running_client(producer):
        # A message needs a key or a value.
        value = b"" if letter.key is None and letter.value is None else letter.value
        headers = list(letter.headers)
        name = broker_name(settings, topic.dead_letters.name)
        await producer.send_and_wait(name, key=letter.key, value=value, headers=headers)
