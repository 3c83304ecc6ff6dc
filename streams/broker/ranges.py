"""Reads a range of a topic, by offset or by time, without joining a consumer group."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal

from aiokafka import AIOKafkaConsumer, TopicPartition

from streams.records import Inbound
from streams.settings import Settings
from streams.topics import Topic, TopicsError, present, require

Bound = Literal["beginning", "end"] | int | datetime
Progress = Callable[[int, int], None]
"""Told how much is done and of how much."""

#: Of the largest number that certainly fits an offset.
OFFSET_DIGITS = 18
#: Seconds without a message or a step forward after which a reader gives up.
STALLED = 60.0


def parse_bound(text: str) -> Bound:
    """`beginning`, `end`, an offset, or an ISO 8601 time (UTC where it names no zone); raises ValueError."""
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
        raise ValueError(f"{text!r} is no `beginning`, `end`, offset or ISO 8601 time") from None
    if moment.timestamp() < 0:
        raise ValueError(f"{text!r} lies before 1970")
    return moment


async def read_range(
    settings: Settings, topic: Topic[Any], start: Bound, stop: Bound, progress: Progress
) -> list[Inbound]:
    """The records from `start` to before `stop`, by partition and offset; what comes later is left out.

    Joins no consumer group. Raises TopicsError where the broker lacks the topic or falls silent.
    """
    await require(settings, (topic,))
    have = await present(settings)
    partitions = [TopicPartition(topic.name, p) for p in range(have[topic.name])]
    consumer = AIOKafkaConsumer(**settings.client(), group_id=None, auto_offset_reset="earliest")
    await consumer.start()
    try:
        consumer.assign(partitions)
        consumer.pause(*partitions)
        first, last = await consumer.beginning_offsets(partitions), await consumer.end_offsets(partitions)
        starts = await _offsets(consumer, start, first, last)
        stops = await _offsets(consumer, stop, first, last)
        total = sum(max(0, stops[tp] - starts[tp]) for tp in partitions)
        progress(0, total)
        found: list[Inbound] = []
        async for messages in read_between(consumer, starts, stops):
            found += [_inbound(m) for m in messages]
            progress(len(found), total)
    finally:
        await consumer.stop()
    return sorted(found, key=lambda r: (r.partition, r.offset))


async def read_between(
    consumer: Any, starts: Mapping[Any, int], stops: Mapping[Any, int], at_most: int = 500
) -> AsyncIterator[list[Any]]:
    """The messages of each partition from its start to before its stop, in chunks. Assigns the consumer.

    Ends by the consumer's positions and not by the last message, which compaction may have removed.
    """
    waiting = {tp for tp in stops if starts[tp] < stops[tp]}
    if not waiting:
        return
    consumer.assign(list(waiting))
    for tp in waiting:
        consumer.seek(tp, starts[tp])
    moved = time.monotonic()
    while waiting:
        found = await consumer.getmany(*waiting, timeout_ms=1000, max_records=at_most)
        messages = [m for tp, own in found.items() for m in own if m.offset < stops[tp]]
        if messages:
            yield messages
            moved = time.monotonic()
        for tp in list(waiting):
            if await consumer.position(tp) >= stops[tp]:
                consumer.pause(tp)
                waiting.discard(tp)
        if time.monotonic() - moved > STALLED:
            names = ", ".join(sorted({tp.topic for tp in waiting}))
            raise TopicsError(f"the broker has given nothing of {names} for {STALLED:.0f} s")


async def _offsets(
    consumer: Any, bound: Bound, first: Mapping[Any, int], last: Mapping[Any, int]
) -> dict[Any, int]:
    """Where `bound` lies in each partition, within what the partition holds."""
    match bound:
        case "beginning":
            return dict(first)
        case "end":
            return dict(last)
        case datetime():
            milliseconds = int(bound.timestamp() * 1000)
            found = await consumer.offsets_for_times(dict.fromkeys(first, milliseconds))
            at = {tp: found[tp].offset if found.get(tp) else last[tp] for tp in first}
        case _:
            at = dict.fromkeys(first, bound)
    return {tp: min(max(at[tp], first[tp]), last[tp]) for tp in first}


def _inbound(m: Any) -> Inbound:
    return Inbound(m.topic, m.partition, m.offset, m.key, m.value, m.timestamp / 1000, tuple(m.headers))
