"""Feeds an embedded broker no faster than it is emptied, and knows which reports have not come out."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiokafka import AIOKafkaConsumer

from streams.broker.embedded import PARTITION_BYTES, PARTITIONS
from streams.codec import decode
from streams.pipeline import FINAL_TOPICS, STAGES
from streams.settings import Settings
from streams.topics import CONSUMED, Topic

#: A report is, in all topics together and with its annotations and candidates, up to so many times as long as
#: it came (benchmarks/pipeline.py measures it: 13 times on average, 38 at the most).
GROWTH = 40
#: What may be on its way at a time. Keys spread over the partitions; half leaves room for an uneven spread.
BUDGET = PARTITION_BYTES * PARTITIONS // 2
SINKS: dict[str, Topic[Any]] = {s.sink.name: s.sink for s in STAGES}
DEAD: dict[str, str] = {t.dead_letters.name: t.name for t in CONSUMED}


@dataclass(frozen=True, slots=True)
class Arrival:
    """What came out of a stage: a record, or a dead letter with its headers and no record."""

    topic: str
    key: str
    source: str
    """The input topic that it comes from."""
    record: Any = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Tally:
    """What went in and what came out, by id: the proof that nothing is missing."""

    inputs: Counter[str] = field(default_factory=Counter)
    outputs: Counter[str] = field(default_factory=Counter)
    dead: list[dict[str, str]] = field(default_factory=list)
    duplicated: list[str] = field(default_factory=list)
    releases: dict[str, str] = field(default_factory=dict)
    _fed: set[tuple[str, str]] = field(default_factory=set)
    _waiting: dict[tuple[str, str], int] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)
    on_the_way: int = 0
    """Estimated bytes, in all topics together, of what has not come out."""
    moved: asyncio.Event = field(default_factory=asyncio.Event)
    """Set whenever something came out."""

    def has(self, topic: str, id_: str) -> bool:
        return (topic, id_) in self._fed

    def went_in(self, topic: str, id_: str, size: int) -> None:
        self.inputs[topic] += 1
        self._fed.add((topic, id_))
        self.on_the_way += size * GROWTH - self._waiting.get((topic, id_), 0)
        self._waiting[topic, id_] = size * GROWTH

    def came_out(self, arrival: Arrival) -> None:
        self.moved.set()
        if arrival.record is None:
            self.dead.append({"topic": arrival.topic, "id": arrival.key, **arrival.headers})
            self._landed(arrival)
            return
        self.outputs[arrival.topic] += 1
        self.releases.update(arrival.record.releases)
        if arrival.record.record_id in self._seen:
            self.duplicated.append(arrival.record.record_id)
        self._seen.add(arrival.record.record_id)
        if arrival.source in FINAL_TOPICS and FINAL_TOPICS[arrival.source].name == arrival.topic:
            self._landed(arrival)

    @property
    def missing(self) -> list[str]:
        """`topic/id` of each report that is neither at the end of its line nor among the dead letters."""
        return [f"{topic}/{id_}" for topic, id_ in self._waiting]

    def _landed(self, arrival: Arrival) -> None:
        self.on_the_way -= self._waiting.pop((arrival.source, arrival.key), 0)


async def arrivals(settings: Settings) -> AsyncIterator[Arrival]:
    """Everything that came and comes out of the stages, from the beginning of their topics; never ends by
    itself.
    """
    consumer = AIOKafkaConsumer(
        *SINKS, *DEAD, **settings.client(), group_id=None, auto_offset_reset="earliest", fetch_max_wait_ms=100
    )
    await consumer.start()
    try:
        async for message in consumer:
            yield _arrival(message)
    finally:
        await consumer.stop()


def _arrival(message: Any) -> Arrival:
    key = (message.key or b"").decode(errors="replace")
    sink = SINKS.get(message.topic)
    if sink is not None and sink.record is not None:
        record = decode(sink.record, message.value)
        return Arrival(message.topic, key, record.source, record)
    headers = {name: value.decode(errors="replace") for name, value in message.headers}
    died_in = DEAD[message.topic]
    source = died_in if died_in in FINAL_TOPICS else _source_field(message.value)
    return Arrival(message.topic, key, source, None, headers)


def _source_field(value: bytes) -> str:
    """The input topic of a record that died between two stages, which one of our stages wrote."""
    try:
        return str(orjson.loads(value)["source"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return ""


#: Seconds without anything coming out after which a feeder gives up waiting.
STALLED = 120.0


@asynccontextmanager
async def following(
    settings: Settings, tally: Tally, shown: Callable[[Arrival], None] = lambda arrival: None
) -> AsyncIterator[asyncio.Task[None]]:
    """Counts in the background what comes out, as long as the block runs; the task ends only by failing."""

    async def follow() -> None:
        async for arrival in arrivals(settings):
            tally.came_out(arrival)
            shown(arrival)

    task = asyncio.create_task(follow())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def room(tally: Tally, size: int) -> None:
    """Waits until a report of `size` bytes may go in without any partition dropping a batch.

    Raises TimeoutError when nothing comes out for too long.
    """
    while tally.on_the_way and tally.on_the_way + size * GROWTH > BUDGET:
        await next_arrival(tally)


async def next_arrival(tally: Tally) -> None:
    """Waits until something comes out; raises TimeoutError when nothing does for STALLED seconds."""
    tally.moved.clear()
    try:
        async with asyncio.timeout(STALLED):
            await tally.moved.wait()
    except TimeoutError:
        raise TimeoutError(f"nothing has come out of the stages for {STALLED:.0f} s") from None
