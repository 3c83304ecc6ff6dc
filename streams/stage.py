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
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from models.loading import Loaded
from streams import metrics
from streams.aggregate import without_text
from streams.batch.decoding import Decoded, bounded_batches, decode_record
from streams.batch.provenance import Maker, with_provenance
from streams.broker.trace_context import trace_headers
from streams.codec import encode
from streams.dead_letters.headers import Fault, dead_letter, describe_error
from streams.order import tombstone_headers
from streams.records import Headers, Inbound, Report
from streams.topics import Topic

In = TypeVar("In", bound=Report)
Out = TypeVar("Out", bound=Report)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Stage(Generic[In, Out]):
    """One step of the flow: reads `source`, applies a model, writes `sink`.

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


@dataclass(frozen=True, slots=True)
class Processed:
    """A source record, its report and the output of the live model; both are None for a tombstone. The output
    has its text, also where that must not be kept: it is to be compared, and written nowhere.
    """

    record: Inbound
    report: Any
    output: Any


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

    def observe(self, processed: Sequence[Processed], /) -> None:
        """Receives a batch after its outputs are handed to the producer; must neither wait nor raise."""


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
    try:
        # The task group cancels the wait for the next batch as soon as a batch fails.
        async with asyncio.TaskGroup() as group:
            await free.acquire()
            async for records in batches:
                decoded = [decode_record(stage.source, record) for record in records]
                for batch in bounded_batches(decoded, ports.batch_characters):
                    # The model is taken here, in the order of the batches: no batch has an older one than a
                    # batch before it.
                    work = _Work(stage, batch, ports.snapshot(), ports)
                    turn = _Turn()
                    group.create_task(work.run(before, turn, free))
                    before = turn
                    turns.append(turn)
                    if len(turns) >= 2 * ports.workers:
                        await turns.popleft().acknowledged.wait()
                    await free.acquire()
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None


@dataclass(frozen=True, slots=True)
class _Work:
    """A batch with the model that it has from its inference to its outputs."""

    stage: Stage[Any, Any]
    batch: Sequence[Decoded]
    loaded: Loaded
    ports: Ports

    @property
    def records(self) -> list[Inbound]:
        return [one.record for one in self.batch]

    async def run(self, before: _Turn, turn: _Turn, free: asyncio.Semaphore) -> None:
        """Infers, and releases `free`; then sends and acknowledges, each after the batch before has."""
        try:
            predictions = await self._infer()
        except Exception:
            await before.acknowledged.wait()
            raise
        free.release()
        await before.sent.wait()
        owned = await self.ports.owns(self.records)
        deliveries = await self._send(iter(predictions)) if owned else []
        turn.sent.set()
        if owned:
            started = time.perf_counter()
            await asyncio.gather(*deliveries)
            metrics.DELIVER.labels(self.stage.name).observe(time.perf_counter() - started)
        else:
            metrics.FENCED.labels(self.stage.name).inc()
        await before.acknowledged.wait()
        if owned:
            await self._acknowledge()
        turn.acknowledged.set()

    async def _infer(self) -> list[Any]:
        """A prediction or a fault for each report of the batch."""
        name = self.stage.name
        metrics.BATCH.labels(name).observe(len(self.batch))
        reports = [r for _, r in self.batch if r is not None and not isinstance(r, Fault)]
        started = time.perf_counter()
        predictions = await self._predict_each(reports) if reports else []
        metrics.INFER.labels(name).observe(time.perf_counter() - started)
        return predictions

    async def _send(self, predictions: Iterator[Any]) -> list[Awaitable[Any]]:
        """Sends an output, a tombstone or a dead letter for each record; returns the deliveries in the
        records' order. A record without key and value is dropped and counted: there is nothing to pass on.
        """
        stage, ports, version = self.stage, self.ports, self.loaded.version
        maker = Maker(stage.name, version, self.loaded.generation, ports.keep_text)
        deliveries: list[Awaitable[Any]] = []
        processed = []
        for record, report in self.batch:
            if report is None:
                deliveries += await _pass_tombstone(stage, record, ports)
                if record.key is not None:
                    processed.append(Processed(record, None, None))
                continue
            result = report if isinstance(report, Fault) else next(predictions)
            output = result
            if not isinstance(result, Fault):
                done = Processed(record, report, result)
                output = _finished(done, maker, ports.max_output_bytes)
            if isinstance(output, Fault):
                deliveries.append(await _send_dead_letter(stage, record, output, version, ports))
                continue
            headers = trace_headers(record.headers)
            delivery = await ports.send(stage.sink.name, output.record.id.encode(), output.value, headers)
            deliveries.append(delivery)
            processed.append(Processed(record, report, output.record))
        outputs = [p.output for p in processed if p.output is not None]
        metrics.RECORDS.labels(stage.name, "sent").inc(len(outputs))
        if stage.count is not None:
            stage.count(outputs)
        ports.observe(processed)
        return deliveries

    async def _acknowledge(self) -> None:
        now = time.time()
        latency = metrics.LATENCY.labels(self.stage.name)
        for record in self.records:
            await self.ports.ack(record)
            # One without a time stamp has -1 ms: its age is not known.
            if record.timestamp > 0:
                latency.observe(max(0.0, now - record.timestamp))

    async def _predict_each(self, reports: Sequence[Any]) -> list[Any]:
        """An output or a fault for each report.

        When the model raises, the batch is halved until the record that causes it is alone. Raises
        StageBroken when the model then fails its canary check too.
        """
        stage, loaded = self.stage, self.loaded
        try:
            work = partial(_predict_batch, stage, loaded, reports)
            outputs = await self.ports.infer(work, self.records)
        except Exception as error:
            if len(reports) > 1:
                middle = len(reports) // 2
                first = await self._predict_each(reports[:middle])
                return first + await self._predict_each(reports[middle:])
            if not await self._passes_canary():
                raise StageBroken(
                    f"{stage.name} {loaded.version} fails its canary check after {describe_error(error)}"
                ) from error
            return [Fault("poison", describe_error(error))]
        return list(outputs)

    async def _passes_canary(self) -> bool:
        try:
            return await self.ports.infer(self.loaded.passes_canary, self.records)
        except Exception:
            return False


class _Output(NamedTuple):
    record: Any
    """As the model made it."""
    value: bytes
    """As it is sent: without its text where that must not be kept."""


def _finished(result: Processed, maker: Maker, max_bytes: int) -> _Output | Fault:
    """The output as it is sent, or the fault with which its source record becomes a dead letter."""
    try:
        output = with_provenance(result.output, result.report, maker._replace(keep_text=True), result.record)
        value = encode(output if maker.keep_text else without_text(output))
    except Exception as error:
        return Fault("not_encodable", describe_error(error))
    if len(value) > max_bytes:
        return Fault("output_too_large", f"{len(value)} bytes, the limit is {max_bytes}")
    return _Output(output, value)


async def _pass_tombstone(stage: Stage[Any, Any], record: Inbound, ports: Ports) -> list[Awaitable[Any]]:
    """Passes the deletion of a report (a key without a value) on to the sink, with its origin."""
    if record.key is None:
        metrics.RECORDS.labels(stage.name, "dropped").inc()
        return []
    headers = [*tombstone_headers(stage.source, record), *trace_headers(record.headers)]
    delivery = await ports.send(stage.sink.name, record.key, None, headers)
    metrics.RECORDS.labels(stage.name, "tombstone").inc()
    return [delivery]


def _predict_batch(stage: Stage[Any, Any], loaded: Loaded, reports: Sequence[Any]) -> Sequence[Any]:
    outputs = stage.predict(loaded.model, reports)
    if len(outputs) != len(reports):
        raise RuntimeError(f"{len(outputs)} outputs for {len(reports)} reports")
    return outputs


async def _send_dead_letter(
    stage: Stage[Any, Any], record: Inbound, fault: Fault, version: str, ports: Ports
) -> Awaitable[Any]:
    metrics.DEAD_LETTERS.labels(stage.name, fault.reason).inc()
    metrics.RECORDS.labels(stage.name, "dead").inc()
    letter = dead_letter(record, stage.name, fault, version)
    return await ports.send(stage.source.dead_letters.name, letter.key, letter.value, letter.headers)
