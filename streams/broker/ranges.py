"""Reads a range of a topic, by offset or by time, without joining a consumer group."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import Any, Literal

from aiokafka import TopicPartition

from streams.broker.consumer import kafka_consumer, running_client
from streams.records import Inbound
from streams.settings import Settings
from streams.topics import Topic, TopicsError, broker_name, partition_counts, require

Bound = Literal["beginning", "end"] | int | Mapping[int, int] | datetime
"""An offset of all partitions, or one of each by its number, or a time."""
Progress = Callable[[int, int], None]
"""Called with the number of records done and the total."""


class Stalled(TopicsError):
    """The broker delivers nothing, though there are records."""


#: Every number with this many digits fits into an offset (63 bits).
OFFSET_DIGITS = 18
#: Seconds without a message after which reading fails.
STALL_SECONDS = 60.0


def parse_bound(text: str) -> Bound:
    """Parses `beginning`, `end`, an offset or an ISO 8601 time (UTC if it has no zone); raises ValueError."""
    if text == "beginning":
        return "beginning"
    if text == "end":
        return "end"
    if text.isascii() and text.isdecimal() and len(text) <= OFFSET_DIGITS:
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is not `beginning`, `end`, an offset or an ISO 8601 time") from None
    if moment.timestamp() < 0:
        raise ValueError(f"{text!r} is before 1970")
    return moment


async def read_range(
    settings: Settings, topic: Topic[Any], start: Bound, stop: Bound, progress: Progress
) -> list[Inbound]:
    """The records from `start` (inclusive) to `stop` (exclusive), ordered by partition and offset; see
    `read_chunks`.
    """
    chunks = read_chunks(settings, topic, start, stop, progress)
    records = [record async for chunk in chunks for record in chunk]
    return sorted(records, key=lambda r: (r.partition, r.offset))


async def read_chunks(  # noqa: PLR0913, PLR0917  a range, and how much of it
    settings: Settings,
    topic: Topic[Any],
    start: Bound,
    stop: Bound,
    progress: Progress,
    most: int | None = None,
) -> AsyncGenerator[list[Inbound]]:
    """The records from `start` (inclusive) to `stop` (exclusive), those of a partition in order; of each
    partition at most the last `most` offsets.

    Records that arrive during the call are not read. Joins no consumer group. Raises TopicsError when the
    broker lacks the topic, or an offset is probably a date; Stalled when the broker stops delivering.
    """
    await require(settings, (topic,))
    counts = await partition_counts(settings)
    partitions = [TopicPartition(broker_name(settings, topic.name), p) for p in range(counts[topic.name])]
    consumer = kafka_consumer(settings, group_id=None, auto_offset_reset="earliest")
    async with running_client(consumer):
        consumer.assign(partitions)
        consumer.pause(*partitions)
        first, last = await consumer.beginning_offsets(partitions), await consumer.end_offsets(partitions)
        _check_dates(topic, start, stop, last)
        starts = await _resolve(consumer, start, first, last)
        stops = await _resolve(consumer, stop, first, last)
        if most is not None:
            starts = {tp: max(offset, stops[tp] - most) for tp, offset in starts.items()}
        total = sum(max(0, stops[tp] - starts[tp]) for tp in partitions)
        progress(0, total)
        done = 0
        async for messages in read_between(consumer, starts, stops):
            yield [_inbound(topic, m) for m in messages]
            done += len(messages)
            progress(done, total)


async def read_between(
    consumer: Any, starts: Mapping[Any, int], stops: Mapping[Any, int], max_records: int = 500
) -> AsyncIterator[list[Any]]:
    """Yields the messages of each partition from its start (inclusive) to its stop (exclusive), in chunks.

    Assigns the partitions to the consumer. The end is detected from the consumer's position, because the last
    message may have been removed by compaction. Raises Stalled when the broker stops delivering.
    """
    unfinished = {tp for tp in stops if starts[tp] < stops[tp]}
    if not unfinished:
        return
    consumer.assign(list(unfinished))
    for tp in unfinished:
        consumer.seek(tp, starts[tp])
    last_message = time.monotonic()
    while unfinished:
        fetched = await consumer.getmany(*unfinished, timeout_ms=1000, max_records=max_records)
        messages = [m for tp, batch in fetched.items() for m in batch if m.offset < stops[tp]]
        if messages:
            yield messages
            last_message = time.monotonic()
        for tp in list(unfinished):
            if await consumer.position(tp) >= stops[tp]:
                consumer.pause(tp)
                unfinished.discard(tp)
        if time.monotonic() - last_message > STALL_SECONDS:
            names = ", ".join(sorted({tp.topic for tp in unfinished}))
            raise Stalled(f"the broker has delivered nothing from {names} for {STALL_SECONDS:.0f} s")


def _check_dates(topic: Topic[Any], start: Bound, stop: Bound, last: Mapping[Any, int]) -> None:
    """Raises TopicsError for an offset behind all records that could be meant as a date: `20260301`."""
    for bound in (start, stop):
        if isinstance(bound, int) and bound > max(last.values(), default=0):
            with suppress(ValueError):
                day = date.fromisoformat(str(bound))
                raise TopicsError(f"{topic.name} has no offset {bound}; if it is a date, write {day}")


async def _resolve(
    consumer: Any, bound: Bound, first: Mapping[Any, int], last: Mapping[Any, int]
) -> dict[Any, int]:
    """The offset of `bound` in each partition, limited to `first` and `last`, its beginning and end."""
    match bound:
        case "beginning":
            return dict(first)
        case "end":
            return dict(last)
        case datetime():
            milliseconds = int(bound.timestamp() * 1000)
            earliest = await consumer.offsets_for_times(dict.fromkeys(first, milliseconds))
            offsets = {tp: earliest[tp].offset if earliest.get(tp) else last[tp] for tp in first}
        case int():
            offsets = dict.fromkeys(first, bound)
        case _:
            offsets = {tp: bound.get(tp.partition, first[tp]) for tp in first}
    return {tp: min(max(offsets[tp], first[tp]), last[tp]) for tp in first}


def _inbound(topic: Topic[Any], m: Any) -> Inbound:
    return Inbound(topic.name, m.partition, m.offset, m.key, m.value, m.timestamp / 1000, tuple(m.headers))
