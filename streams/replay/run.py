"""Runs records of a topic through the rest of the flow, as the live stages do but without a broker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from models.releases.loading import Loaded
from streams.broker.ranges import Progress
from streams.codec import decode
from streams.pipeline import STAGES
from streams.records import Headers, Inbound
from streams.stage import Processed, Stage, run_stage
from streams.topics import Topic, TopicsError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Dead:
    """A record that a stage buried: its key, where it died, and why, without its text."""

    key: str
    topic: str
    partition: int
    """Of the source record, like the offset."""
    offset: int
    stage: str
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came out at the end of the flow, in the order of the range, repeats included; and what did not."""

    outputs: list[Any]
    dead: list[Dead]


def stages_from(topic: Topic[Any]) -> list[Stage[Any, Any]]:
    """The rest of the flow from a topic on; raises TopicsError where no stage reads it."""
    by_source = {s.source.name: s for s in STAGES}
    stages: list[Stage[Any, Any]] = []
    name = topic.name
    while name in by_source:
        stages.append(by_source[name])
        name = stages[-1].sink.name
    if not stages:
        raise TopicsError(f"no stage reads {topic.name}; there are {', '.join(by_source)}")
    return stages


async def run_chain(  # noqa: PLR0913  what a replay depends on
    records: Sequence[Inbound],
    topic: Topic[Any],
    models: Mapping[str, Loaded],
    batch: int,
    progress: Progress,
    *,
    max_output_bytes: int = 1_000_000,
) -> Replayed:
    """Runs records of `topic` through every stage after it, `batch` at a time by position.

    The same records and releases give equal outputs. Raises TopicsError where no stage reads the topic,
    KeyError where a stage has no model, StageBroken where a model fails on its canary.
    """
    stages = stages_from(topic)
    if missing := [s.name for s in stages if s.name not in models]:
        raise KeyError(f"no release for {', '.join(missing)}")
    total = len(records) * len(stages)
    dead: list[Dead] = []
    progress(0, total)
    for i, stage in enumerate(stages):
        # What died has no way before it: it counts as done in the stages to come.
        done = total - len(records) * (len(stages) - i)
        ports = _Collector(models[stage.name], max_output_bytes, progress, done, total)
        await run_stage(stage, _batches(records, batch), ports)
        records, died = _sorted_out(stage, records, ports.sent)
        dead += died
    sink = stages[-1].sink.record
    assert sink is not None
    progress(total, total)
    return Replayed([decode(sink, r.value) for r in records], dead)


class _Collector:
    """The world around a replayed stage: what is sent is kept, and confirmed at once."""

    def __init__(
        self, loaded: Loaded, max_output_bytes: int, progress: Progress, done: int, total: int
    ) -> None:
        self.max_output_bytes = max_output_bytes
        self.sent: list[tuple[str, bytes | None, bytes | None, Headers]] = []
        self._loaded = loaded
        self._progress = progress
        self._done = done
        self._total = total

    def snapshot(self) -> Loaded:
        return self._loaded

    async def infer(self, work: Callable[[], T]) -> T:
        return await asyncio.to_thread(work)

    async def send(
        self, topic: str, key: bytes | None, value: bytes | None, headers: Headers
    ) -> Awaitable[Any]:
        self.sent.append((topic, key, value, headers))
        confirmed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        confirmed.set_result(None)
        return confirmed

    async def ack(self, record: Inbound) -> None:
        self._done += 1
        self._progress(self._done, self._total)

    def observe(self, processed: Sequence[Processed]) -> None:
        """Nothing looks on."""


async def _batches(records: Sequence[Inbound], size: int) -> AsyncIterator[Sequence[Inbound]]:
    for i in range(0, len(records), size):
        yield records[i : i + size]


def _sorted_out(
    stage: Stage[Any, Any], records: Sequence[Inbound], sent: Sequence[Any]
) -> tuple[list[Inbound], list[Dead]]:
    """Source records of the next stage, and the dead; a stage sends one of the two for each record, in
    order.
    """
    onward, dead = [], []
    for record, (topic, key, value, headers) in zip(records, sent, strict=True):
        if topic == stage.sink.name:
            onward.append(Inbound(topic, record.partition, record.offset, key, value, record.timestamp))
            continue
        why = {name: text.decode(errors="replace") for name, text in headers}
        name = (record.key or b"").decode(errors="replace")
        place = (stage.source.name, record.partition, record.offset)
        dead.append(Dead(name, *place, stage.name, why["pv-reason"], why["pv-detail"]))
    return onward, dead
