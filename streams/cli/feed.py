"""Counts what goes into the stages and what comes out, and limits how much of it an embedded broker holds."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson

from streams.agents.pipeline import FINAL_TOPICS, STAGES, final_of
from streams.broker.consumer import kafka_consumer, running_client
from streams.broker.embedded import PARTITION_BYTES, PARTITIONS
from streams.codec import decode, encode
from streams.records import Report
from streams.settings import Settings
from streams.topics import CONSUMED, Topic, table_name

#: Size of a report in all topics together, with its annotations and candidates, over its size on arrival: an
#: upper bound. benchmarks/speed/process.py measures it.
GROWTH = 40
#: Most bytes in flight. Keys spread over the partitions; half of the capacity allows for an uneven spread.
MAX_IN_FLIGHT = PARTITION_BYTES * PARTITIONS // 2
#: Seconds without any output after which a sender gives up waiting.
STALL_SECONDS = 120.0
SINKS: dict[str, Topic[Any]] = {sink.name: sink for s in STAGES for sink in s.sinks}
#: All topics of final records.
FINAL = frozenset(topic.name for finals in FINAL_TOPICS.values() for topic in finals)
#: Topic of dead letters to the topic they were read from.
DEAD: dict[str, str] = {t.dead_letters.name: t.name for t in CONSUMED}


@dataclass(frozen=True, slots=True)
class Arrival:
    """What came out of a stage: a record, or a dead letter, which has headers and no record."""

    topic: str
    key: str
    source: str
    """The input topic of the report."""
    record: Any = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Tally:
    """Counts of what was sent and what came out, by topic and id, from which missing reports follow."""

    inputs: Counter[str] = field(default_factory=Counter)
    outputs: Counter[str] = field(default_factory=Counter)
    dead_letters: list[dict[str, str]] = field(default_factory=list)
    duplicated: list[str] = field(default_factory=list)
    """Record ids that came out more than once."""
    releases: dict[str, str] = field(default_factory=dict)
    in_flight: int = 0
    """Estimated bytes, in all topics together, of the reports that have not come out."""
    progressed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set whenever something comes out."""
    _sent: set[tuple[str, str]] = field(default_factory=set)
    _pending: dict[tuple[str, str], int] = field(default_factory=dict)
    """Estimated bytes of each report that has not come out."""
    _awaited: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    """Its final topics that it has not reached."""
    _record_ids: set[str] = field(default_factory=set)

    def was_sent(self, topic: str, id_: str) -> bool:
        return (topic, id_) in self._sent

    def count_sent(self, topic: str, id_: str, size: int) -> None:
        """Counts a report of `size` bytes that is sent to an input topic."""
        self.inputs[topic] += 1
        self._sent.add((topic, id_))
        self.in_flight += size * GROWTH - self._pending.get((topic, id_), 0)
        self._pending[topic, id_] = size * GROWTH
        self._awaited[topic, id_] = {final.name for final in FINAL_TOPICS[topic]}

    def count_arrival(self, arrival: Arrival) -> None:
        """Counts a record or a dead letter that came out of a stage."""
        self.progressed.set()
        if arrival.record is None:
            self.dead_letters.append({"topic": arrival.topic, "id": arrival.key, **arrival.headers})
            self._finish(arrival, _not_reached(arrival))
            return
        self.outputs[arrival.topic] += 1
        self.releases.update(arrival.record.releases)
        if arrival.record.record_id in self._record_ids:
            self.duplicated.append(arrival.record.record_id)
        self._record_ids.add(arrival.record.record_id)
        self._finish(arrival, {arrival.topic})

    @property
    def missing(self) -> list[str]:
        """`topic/id` of each report that has neither reached its final topics nor become a dead letter."""
        return [f"{topic}/{id_}" for topic, id_ in self._pending]

    def _finish(self, arrival: Arrival, topics: Collection[str]) -> None:
        """Waits for the report on these topics no more."""
        report = arrival.source, arrival.key
        awaited = self._awaited.get(report, set())
        awaited.difference_update(topics)
        if not awaited:
            self._awaited.pop(report, None)
            self.in_flight -= self._pending.pop(report, 0)


def _not_reached(letter: Arrival) -> Collection[str]:
    """The final topics that the report of a dead letter does not reach: what is behind the stage of it."""
    behind = {final_of(s).name for s in STAGES if s.name == letter.headers.get("pv-stage")}
    return behind or FINAL


async def arrivals(settings: Settings) -> AsyncIterator[Arrival]:
    """Whatever the stages write but tombstones, from the beginning of their topics; never ends."""
    consumer = kafka_consumer(
        settings, *SINKS, *DEAD, group_id=None, auto_offset_reset="earliest", fetch_max_wait_ms=100
    )
    async with running_client(consumer):
        async for message in consumer:
            topic = table_name(settings, message.topic)
            if message.value is not None or topic in DEAD:
                yield _arrival(topic, message)


def _arrival(topic: str, message: Any) -> Arrival:
    key = (message.key or b"").decode(errors="replace")
    sink = SINKS.get(topic)
    if sink is not None and sink.record is not None:
        record = decode(sink.record, message.value)
        return Arrival(topic, key, record.source, record)
    headers = {name: (value or b"").decode(errors="replace") for name, value in message.headers}
    died_in = DEAD[topic]
    source = died_in if died_in in FINAL_TOPICS else _source_field(message.value)
    return Arrival(topic, key, source, None, headers)


def _source_field(value: bytes | None) -> str:
    """The input topic of a record that a stage wrote and the next one could not process; empty if unknown."""
    try:
        return str(orjson.loads(value or b"")["source"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return ""


@asynccontextmanager
async def counting_arrivals(
    settings: Settings, tally: Tally, on_arrival: Callable[[Arrival], None] = lambda arrival: None
) -> AsyncIterator[asyncio.Task[None]]:
    """Counts what comes out in a background task while the block runs; the task ends only by failing."""

    async def count() -> None:
        async for arrival in arrivals(settings):
            tally.count_arrival(arrival)
            on_arrival(arrival)

    task = asyncio.create_task(count())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def admit(tally: Tally, topic: str, report: Report) -> None:
    """Waits until a report can be sent without any partition dropping a batch, and counts it as sent.

    Raises TimeoutError when nothing comes out for STALL_SECONDS.
    """
    size = len(encode(report))
    while tally.in_flight and tally.in_flight + size * GROWTH > MAX_IN_FLIGHT:
        await wait_for_arrival(tally)
    tally.count_sent(topic, report.id, size)


async def wait_for_arrival(tally: Tally) -> None:
    """Waits until something comes out; raises TimeoutError when nothing does for STALL_SECONDS."""
    tally.progressed.clear()
    try:
        async with asyncio.timeout(STALL_SECONDS):
            await tally.progressed.wait()
    except TimeoutError:
        raise TimeoutError(f"nothing has come out of the stages for {STALL_SECONDS:.0f} s") from None
