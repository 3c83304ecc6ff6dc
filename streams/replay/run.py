"""Runs records of a topic through the stages after it, as the live stages do, but without a broker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from models.loading import Loaded
from streams.agents.pipeline import stages_from
from streams.broker.ranges import Progress
from streams.codec import decode
from streams.items import Item
from streams.records import Headers, Inbound
from streams.stage import Stage, run_stage
from streams.topics import Topic

T = TypeVar("T")
#: Most characters of the texts of a batch; the answers do not depend on it.
BATCH_CHARACTERS = 32_000


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that a stage could not process: its key, the place and the reason, without its text."""

    key: str
    topic: str
    partition: int
    """Of the source record, like `topic` and `offset`."""
    offset: int
    stage: str
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """The records of the last stage, in the order of the range, repeats included; and the dead letters."""

    outputs: list[Any]
    """As they may be written: without a text that must not be kept."""
    dead: list[DeadLetter]
    whole: list[Any] | None = None
    """The outputs with these texts, to be compared and scored, and written nowhere; None if equal."""

    @property
    def compared(self) -> list[Any]:
        return self.outputs if self.whole is None else self.whole


async def run_chain(  # noqa: PLR0913  all that a replay depends on
    records: Sequence[Inbound],
    topic: Topic[Any],
    models: Mapping[str, Loaded],
    batch: int,
    progress: Progress,
    *,
    results: str | None = None,
    max_output_bytes: int = 1_000_000,
    keep_text: bool = False,
) -> ReplayResult:
    """Runs records of `topic` through every stage up to the topic `results`, in batches of `batch` records by
    position. Tombstones and records without key and value give no output.

    `models`: stage to model. The same records and releases give equal outputs. Raises TopicsError as
    `stages_from`, KeyError where a stage has no model, StageBroken where a model fails its canary
    check.
    """
    stages = stages_from(topic.name, results)
    records = [r for r in records if r.key is not None or r.value is not None]
    if missing := [s.name for s in stages if s.name not in models]:
        raise KeyError(f"no release for {', '.join(missing)}")
    total = len(records) * len(stages)
    dead: list[DeadLetter] = []
    withheld: list[Any] = []
    progress(0, total)
    for i, stage in enumerate(stages):
        # A dead letter skips the later stages: it counts as done in them.
        done = total - len(records) * (len(stages) - i)
        ports = _ReplayPorts(models[stage.name], progress, done, total)
        ports.max_output_bytes, ports.keep_text = max_output_bytes, keep_text
        await run_stage(stage, _batches(records, batch), ports)
        records, letters = _split(stage, records, ports.sent)
        dead += letters
        withheld = ports.withheld
    sink = stages[-1].sink.record
    assert sink is not None
    progress(total, total)
    outputs = [decode(sink, r.value) for r in records if r.value is not None]
    return ReplayResult(outputs, dead, _whole(outputs, withheld))


def _whole(outputs: Sequence[Any], withheld: Sequence[Any]) -> list[Any] | None:
    """The outputs with those that are withheld in their place; None if there are none."""
    both = zip(withheld, outputs, strict=True)
    return [output if own is None else own for own, output in both] if any(withheld) else None


class _ReplayPorts:
    """The ports of a replayed stage: keeps in memory what the stage sends, and confirms it at once."""

    workers = 1
    batch_characters = BATCH_CHARACTERS
    max_output_bytes: int
    keep_text: bool

    def __init__(self, loaded: Loaded, progress: Progress, done: int, total: int) -> None:
        self.sent: list[tuple[str, bytes | None, bytes | None, Headers]] = []
        self.withheld: list[Any] = []
        """For each output that was sent: the whole, if its text must not be kept, or None."""
        self._loaded = loaded
        self._progress = progress
        self._done = done
        self._total = total

    def snapshot(self) -> Loaded:
        return self._loaded

    async def infer(self, work: Callable[[], T], batch: Sequence[Inbound]) -> T:
        return await asyncio.to_thread(work)

    async def owns(self, batch: Sequence[Inbound]) -> bool:
        return True

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

    def observe(self, done: Sequence[Item]) -> None:
        outputs = [item.output for item in done if item.output is not None]
        self.withheld += [o if o.aggregate_only and not self.keep_text else None for o in outputs]


async def _batches(records: Sequence[Inbound], size: int) -> AsyncIterator[Sequence[Inbound]]:
    for i in range(0, len(records), size):
        yield records[i : i + size]


def _split(
    stage: Stage[Any, Any], records: Sequence[Inbound], sent: Sequence[Any]
) -> tuple[list[Inbound], list[DeadLetter]]:
    """The next stage's source records, and dead letters: a stage sends one or the other, in order."""
    outputs, dead = [], []
    for record, (topic, key, value, headers) in zip(records, sent, strict=True):
        if topic == stage.sink_of(record.topic).name:
            outputs.append(Inbound(topic, record.partition, record.offset, key, value, record.timestamp))
            continue
        texts = {name: (text or b"").decode(errors="replace") for name, text in headers}
        name = (record.key or b"").decode(errors="replace")
        place = (stage.source_of(record).name, record.partition, record.offset)
        dead.append(DeadLetter(name, *place, stage.name, texts["pv-reason"], texts["pv-detail"]))
    return outputs, dead
