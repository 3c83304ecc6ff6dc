"""The loop of a stage: decode a batch, run inference, send the outputs, wait for the broker, acknowledge.

Delivery is at least once: a record is acknowledged only after the broker has confirmed its output or its dead
letter, and in the order of the offsets. An error that no single record causes is raised; the process then
ends, and the broker delivers the unacknowledged records again.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from models.loading import Loaded
from streams import metrics
from streams.batches import bounded_batches
from streams.broker.trace_context import trace_headers
from streams.dead_letters.headers import Fault, dead_letter, describe_error
from streams.items import Item, decoded, finished
from streams.order import tombstone_headers
from streams.provenance import Maker
from streams.reading_form import Read
from streams.records import Headers, Inbound, Report
from streams.topics import Topic

In = TypeVar("In", bound=Report)
Out = TypeVar("Out", bound=Report)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Stage(Generic[In, Out]):
    """One step of the flow: reads `source`, `further` and those of `apart`, applies a model, writes `sink`.

    `predict` is synchronous, does no I/O and returns one output for each input, in order.
    """

    name: str
    source: Topic[In]
    sink: Topic[Out]
    predict: Callable[[Any, Sequence[In]], Sequence[Out]]
    count: Callable[[Sequence[Out]], None] | None = None
    """Updates the stage's own counters with the outputs of a batch, after they are sent."""
    prepare: Callable[[], None] | None = None
    """Loads what `predict` needs beside the model, so that no inference has to, whose time is limited."""
    further: tuple[Topic[In], ...] = ()
    """More source topics, with records of the same type."""
    apart: tuple[tuple[Topic[In], Topic[Out]], ...] = ()
    """More source topics, each with the sink of what is made of its records."""
    judged: Callable[[Any, Sequence[Out]], Sequence[Out]] | None = None
    """The outputs as a judge decides, where the loaded model has one."""
    long_forms: bool = False
    """Whether acronyms are read as the long forms that name a drug or an effect."""

    def outputs(self, loaded: Loaded, reports: Sequence[In]) -> Sequence[Out]:
        """What the model makes of the reports in their reading form, and its judge of that; over their texts
        as they were written. Raises RuntimeError where it is not one output for each.
        """
        read = [Read.of(report, long_forms=self.long_forms) for report in reports]
        outputs = self.predict(loaded.model, [r.read for r in read])
        if self.judged is not None and loaded.judge is not None:
            outputs = self.judged(loaded.judge.model, outputs)
        if len(outputs) != len(reports):
            raise RuntimeError(f"{len(outputs)} outputs for {len(reports)} reports")
        return [r.written(output) for r, output in zip(read, outputs, strict=True)]

    @property
    def sources(self) -> tuple[Topic[In], ...]:
        """Every source topic."""
        return (self.source, *self.further, *(topic for topic, _ in self.apart))

    @property
    def sinks(self) -> tuple[Topic[Out], ...]:
        """Every topic of outputs."""
        return (self.sink, *(sink for _, sink in self.apart))

    @property
    def topics(self) -> tuple[Topic[Any], ...]:
        """Every topic that the stage needs."""
        return (*self.sources, *(topic.dead_letters for topic in self.sources), *self.sinks)

    def sink_of(self, source: str) -> Topic[Out]:
        """Where the outputs of records of a source topic go."""
        return next((sink for topic, sink in self.apart if topic.name == source), self.sink)

    def source_of(self, record: Inbound) -> Topic[In]:
        """The topic that a record came from, one of `sources`."""
        return next((topic for topic in self.sources if topic.name == record.topic), self.source)


class StageBroken(RuntimeError):
    """The model fails its canary check, so the process is at fault and not a record."""


class Ports(Protocol):
    """What a stage needs from its environment: a model, threads for inference, a producer and a consumer."""

    workers: int
    """How many batches may be in inference at once."""
    batch_characters: int
    """Most characters of the texts of a batch."""
    max_output_bytes: int
    keep_text: bool
    """Whether the text of reports with `aggregate_only` may be kept in final records."""

    def snapshot(self) -> Loaded:
        """The live model; a batch uses the one it got at its start, whatever is swapped meanwhile."""

    async def infer(self, work: Callable[[], T], batch: Sequence[Inbound], /) -> T:
        """Runs synchronous model code on a batch, off the event loop; alone in this process where the batch
        has a record in whose inference a process has died.
        """

    async def owns(self, batch: Sequence[Inbound], /) -> bool:
        """Whether the batch still belongs to this process. If not, it is delivered to another one, and here
        it is neither sent nor acknowledged.
        """

    async def send(
        self, topic: str, key: bytes | None, value: bytes | None, headers: Headers, /
    ) -> Awaitable[Any]:
        """Hands a record to the producer; awaiting the result waits for the broker's confirmation."""

    async def ack(self, record: Inbound, /) -> None:
        """Acknowledges a source record."""

    def observe(self, done: Sequence[Item], /) -> None:
        """Receives the outputs and the tombstones of a batch after they are handed to the producer; must
        neither wait nor raise.
        """


class _Turn:
    """The place of a batch in the order of the batches: set when it, and all before it, have come so far."""

    def __init__(self) -> None:
        self.sent, self.acknowledged = asyncio.Event(), asyncio.Event()

    @classmethod
    def past(cls) -> _Turn:
        """The place of a batch that is done."""
        turn = cls()
        turn.sent.set()
        turn.acknowledged.set()
        return turn


async def run_stage(stage: Stage[Any, Any], batches: AsyncIterator[Sequence[Inbound]], ports: Ports) -> None:
    """Processes the records of `batches` until there are no more.

    `ports.workers` batches are in inference at once, and as many may wait for an earlier one or for the
    broker's confirmations; a further one waits. They are sent and acknowledged in their order, whichever
    inference ends first. Raises StageBroken when the model fails its canary check, after everything before
    that batch is acknowledged, and the error of a delivery that fails.
    """
    free = asyncio.Semaphore(ports.workers)
    turns: deque[_Turn] = deque()
    before = _Turn.past()
    run = _Run(stage, ports)
    try:
        # The task group cancels the wait for the next batch as soon as a batch fails.
        async with asyncio.TaskGroup() as group:
            await free.acquire()
            async for records in batches:
                items = [decoded(stage.source_of(record), record) for record in records]
                for batch in bounded_batches(items, ports.batch_characters):
                    turn = _Turn()
                    # The model is taken here, in the order of the batches: no batch has an older one than a
                    # batch before it.
                    group.create_task(run.batch(batch, ports.snapshot(), before, turn, free))
                    before = turn
                    turns.append(turn)
                    if len(turns) >= 2 * ports.workers:
                        await turns.popleft().acknowledged.wait()
                    await free.acquire()
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None


@dataclass(frozen=True, slots=True)
class _Run:
    """A stage at work: the road of each of its batches."""

    stage: Stage[Any, Any]
    ports: Ports

    async def batch(
        self, batch: Sequence[Item], loaded: Loaded, before: _Turn, turn: _Turn, free: asyncio.Semaphore
    ) -> None:
        """Infers, and releases `free`; then sends and acknowledges, each after the batch before has."""
        records = [item.record for item in batch]
        try:
            answered = await self._infer(batch, records, loaded)
        except Exception:
            await before.acknowledged.wait()
            raise
        free.release()
        await before.sent.wait()
        owned = await self.ports.owns(records)
        deliveries = await self._send(answered, loaded) if owned else []
        turn.sent.set()
        if owned:
            started = time.perf_counter()
            await asyncio.gather(*deliveries)
            metrics.DELIVER.labels(self.stage.name).observe(time.perf_counter() - started)
        else:
            metrics.FENCED.labels(self.stage.name).inc()
        await before.acknowledged.wait()
        if owned:
            await self._acknowledge(records)
        turn.acknowledged.set()

    async def _infer(self, batch: Sequence[Item], records: Sequence[Inbound], loaded: Loaded) -> list[Item]:
        """The batch with an output or a fault for each report."""
        name = self.stage.name
        metrics.BATCH.labels(name).observe(len(batch))
        readable = [item for item in batch if item.report is not None]
        started = time.perf_counter()
        answered = iter(await self._predicted(readable, records, loaded) if readable else ())
        metrics.INFER.labels(name).observe(time.perf_counter() - started)
        return [item if item.report is None else next(answered) for item in batch]

    async def _predicted(
        self, items: Sequence[Item], records: Sequence[Inbound], loaded: Loaded
    ) -> list[Item]:
        """The items, each with a report, with an output or a fault.

        When the model raises, the items are halved until the record that causes it is alone. Raises
        StageBroken when the model then fails its canary check too. `records`: of the whole batch.
        """
        try:
            work = partial(_predict_batch, self.stage, loaded, [item.report for item in items])
            outputs = await self.ports.infer(work, records)
        except Exception as error:
            if len(items) > 1:
                middle = len(items) // 2
                first = await self._predicted(items[:middle], records, loaded)
                return first + await self._predicted(items[middle:], records, loaded)
            if not await self._passes_canary(records, loaded):
                raise StageBroken(
                    f"{self.stage.name} {loaded.version} fails its canary check after {describe_error(error)}"
                ) from error
            return [replace(items[0], fault=Fault("poison", describe_error(error)))]
        return [Item(item.record, item.report, output) for item, output in zip(items, outputs, strict=True)]

    async def _passes_canary(self, records: Sequence[Inbound], loaded: Loaded) -> bool:
        try:
            return await self.ports.infer(loaded.passes_canary, records)
        except Exception:
            return False

    async def _send(self, answered: Sequence[Item], loaded: Loaded) -> list[Awaitable[Any]]:
        """Sends an output, a tombstone or a dead letter for each item; returns the deliveries in the items'
        order. A record without key and value is dropped and counted: there is nothing to pass on.
        """
        stage, ports = self.stage, self.ports
        deliveries: list[Awaitable[Any]] = []
        done = []
        for item in self._finished(answered, loaded):
            if item.fault is not None:
                deliveries.append(await self._send_dead_letter(item.record, item.fault, loaded.version))
            elif item.value is not None:
                headers = trace_headers(item.record.headers)
                key = item.output.id.encode()
                deliveries.append(
                    await ports.send(stage.sink_of(item.record.topic).name, key, item.value, headers)
                )
                done.append(item)
            elif item.record.key is not None:
                deliveries.append(await self._pass_tombstone(item.record))
                done.append(item)
            else:
                metrics.RECORDS.labels(stage.name, "dropped").inc()
        outputs = [item.output for item in done if item.output is not None]
        metrics.RECORDS.labels(stage.name, "sent").inc(len(outputs))
        if stage.count is not None:
            stage.count(outputs)
        ports.observe(done)
        return deliveries

    def _finished(self, answered: Sequence[Item], loaded: Loaded) -> Iterator[Item]:
        maker = Maker.of(self.stage.name, loaded)
        keep_text, limit = self.ports.keep_text, self.ports.max_output_bytes
        for item in answered:
            is_answered = item.report is not None and item.fault is None
            yield finished(item, maker, keep_text=keep_text, limit=limit) if is_answered else item

    async def _pass_tombstone(self, record: Inbound) -> Awaitable[Any]:
        """Passes the deletion of a report (a key without a value) on to the sink, with its origin."""
        headers = [*tombstone_headers(self.stage.source_of(record), record), *trace_headers(record.headers)]
        delivery = await self.ports.send(self.stage.sink_of(record.topic).name, record.key, None, headers)
        metrics.RECORDS.labels(self.stage.name, "tombstone").inc()
        return delivery

    async def _send_dead_letter(self, record: Inbound, fault: Fault, version: str) -> Awaitable[Any]:
        metrics.DEAD_LETTERS.labels(self.stage.name, fault.reason).inc()
        metrics.RECORDS.labels(self.stage.name, "dead").inc()
        letter = dead_letter(record, self.stage.name, fault, version)
        return await self.ports.send(
            self.stage.source_of(record).dead_letters.name, letter.key, letter.value, letter.headers
        )

    async def _acknowledge(self, records: Sequence[Inbound]) -> None:
        now = time.time()
        latency = metrics.LATENCY.labels(self.stage.name)
        for record in records:
            await self.ports.ack(record)
            # One without a time stamp has -1 ms: its age is not known.
            if record.timestamp > 0:
                latency.observe(max(0.0, now - record.timestamp))


def _predict_batch(stage: Stage[Any, Any], loaded: Loaded, reports: Sequence[Any]) -> Sequence[Any]:
    return stage.outputs(loaded, reports)
