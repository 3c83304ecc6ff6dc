"""The loop of a stage: decode a batch, run inference, send the outputs, wait for the broker, acknowledge.

Delivery is at least once: a record is acknowledged only after the broker has confirmed its output or its dead
letter, and in the order of the offsets. An error that no single record causes is raised; the process then
ends, and the broker delivers the unacknowledged records again.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from models.releases.loading import Loaded
from streams import metrics
from streams.aggregate import without_text
from streams.broker.trace_context import trace_headers
from streams.codec import BadRecord, decode, encode
from streams.dead_letters.headers import Fault, dead_letter, describe_error
from streams.inputs import read_report
from streams.order import own_origin, tombstone_headers
from streams.records import Headers, Inbound, Report
from streams.topics import INPUTS, Topic

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
    """A source record, its report and the output of the live model; both are None for a tombstone."""

    record: Inbound
    report: Any
    output: Any


class StageBroken(RuntimeError):
    """The model fails its canary check, so the process is at fault and not a record."""


class Ports(Protocol):
    """What a stage needs from its environment: a model, a thread for inference, a producer and a consumer."""

    max_output_bytes: int
    keep_text: bool
    """Whether the text of reports with `aggregate_only` may be kept in final records."""

    def snapshot(self) -> Loaded:
        """The live model; a batch uses the one it got at its start, whatever is swapped meanwhile."""

    async def infer(self, work: Callable[[], T], /) -> T:
        """Runs synchronous model code off the event loop."""

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


async def run_stage(stage: Stage[Any, Any], batches: AsyncIterator[Sequence[Inbound]], ports: Ports) -> None:
    """Processes batches until there are no more.

    While one batch waits for the broker's confirmations, the next one may run inference; a third one waits.
    Raises StageBroken when the model fails its canary check, and the error of a delivery that fails.
    """
    confirming: asyncio.Task[None] | None = None
    try:
        # The task group cancels the wait for the next batch as soon as a confirmation fails.
        async with asyncio.TaskGroup() as group:
            async for batch in batches:
                deliveries = await _process(stage, batch, ports)
                if deliveries is None:
                    continue
                previous = confirming
                confirming = group.create_task(_confirm(stage, batch, deliveries, previous, ports))
                if previous is not None:
                    await previous
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None


async def _process(
    stage: Stage[Any, Any], batch: Sequence[Inbound], ports: Ports
) -> list[Awaitable[Any]] | None:
    """Sends an output, a tombstone or a dead letter for each record; returns the deliveries in the records'
    order, or None where the batch belongs to another process by now and nothing is sent. A record without key
    and value is dropped and counted: there is nothing to pass on.
    """
    metrics.BATCH.labels(stage.name).observe(len(batch))
    loaded = ports.snapshot()
    maker = Maker(stage.name, loaded.version, loaded.generation, ports.keep_text)
    decoded = {i: _decode(stage, record) for i, record in enumerate(batch) if record.value is not None}
    reports = [d for d in decoded.values() if not isinstance(d, Fault)]
    started = time.perf_counter()
    predictions = iter(await _predict_each(stage, loaded, reports, ports) if reports else [])
    metrics.INFER.labels(stage.name).observe(time.perf_counter() - started)
    if not await ports.owns(batch):
        metrics.FENCED.labels(stage.name).inc()
        return None
    deliveries: list[Awaitable[Any]] = []
    processed = []
    for i, record in enumerate(batch):
        if record.value is None:
            deliveries += await _pass_tombstone(stage, record, ports)
            if record.key is not None:
                processed.append(Processed(record, None, None))
            continue
        report = decoded[i]
        result = report if isinstance(report, Fault) else next(predictions)
        output = result
        if not isinstance(result, Fault):
            done = Processed(record, report, result)
            output = _finished(done, maker, ports.max_output_bytes)
        if isinstance(output, Fault):
            deliveries.append(await _send_dead_letter(stage, record, output, loaded.version, ports))
            continue
        headers = trace_headers(record.headers)
        deliveries.append(await ports.send(stage.sink.name, output.record.id.encode(), output.value, headers))
        processed.append(Processed(record, report, output.record))
    outputs = [p.output for p in processed if p.output is not None]
    metrics.RECORDS.labels(stage.name, "sent").inc(len(outputs))
    if stage.count is not None:
        stage.count(outputs)
    ports.observe(processed)
    return deliveries


class Maker(NamedTuple):
    """What made an output: the stage, the version and generation of its release, and whether it may keep the
    text of reports with `aggregate_only`.
    """

    stage: str
    version: str
    generation: int
    keep_text: bool = False


class _Output(NamedTuple):
    record: Any
    value: bytes


def _finished(result: Processed, maker: Maker, max_bytes: int) -> _Output | Fault:
    """The output as it is sent, or the fault with which its source record becomes a dead letter."""
    try:
        output = with_provenance(result.output, result.report, maker, result.record)
        value = encode(output)
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


async def _confirm(
    stage: Stage[Any, Any],
    batch: Sequence[Inbound],
    deliveries: Sequence[Awaitable[Any]],
    previous: asyncio.Task[None] | None,
    ports: Ports,
) -> None:
    """Acknowledges the batch once its deliveries are confirmed and the previous batch is acknowledged."""
    started = time.perf_counter()
    await asyncio.gather(*deliveries)
    metrics.DELIVER.labels(stage.name).observe(time.perf_counter() - started)
    if previous is not None:
        await previous
    now = time.time()
    latency = metrics.LATENCY.labels(stage.name)
    for record in batch:
        await ports.ack(record)
        latency.observe(max(0.0, now - record.timestamp))


def _decode(stage: Stage[Any, Any], record: Inbound) -> Any:
    """The report in a source record, or the fault with which it becomes a dead letter."""
    assert stage.source.record is not None
    assert record.value is not None
    try:
        # Also checks the timestamp, which a producer may have set to anything.
        _received_at(record)
        if stage.source in INPUTS:
            return replace(read_report(record.value), origin=own_origin(record))
        return decode(stage.source.record, record.value)
    except BadRecord as error:
        return Fault("bad_record", str(error))
    except Exception as error:
        return Fault("bad_record", describe_error(error))


async def _predict_each(
    stage: Stage[Any, Any], loaded: Loaded, reports: Sequence[Any], ports: Ports
) -> list[Any]:
    """An output or a fault for each report.

    When the model raises, the batch is halved until the record that causes it is alone. Raises StageBroken
    when the model then fails its canary check too.
    """
    try:
        outputs = await ports.infer(partial(_predict_batch, stage, loaded, reports))
    except Exception as error:
        if len(reports) > 1:
            middle = len(reports) // 2
            first = await _predict_each(stage, loaded, reports[:middle], ports)
            return first + await _predict_each(stage, loaded, reports[middle:], ports)
        if not await _passes_canary(loaded, ports):
            raise StageBroken(
                f"{stage.name} {loaded.version} fails its canary check after {describe_error(error)}"
            ) from error
        return [Fault("poison", describe_error(error))]
    return list(outputs)


def _predict_batch(stage: Stage[Any, Any], loaded: Loaded, reports: Sequence[Any]) -> Sequence[Any]:
    outputs = stage.predict(loaded.model, reports)
    if len(outputs) != len(reports):
        raise RuntimeError(f"{len(outputs)} outputs for {len(reports)} reports")
    return outputs


async def _passes_canary(loaded: Loaded, ports: Ports) -> bool:
    try:
        return await ports.infer(loaded.passes_canary)
    except Exception:
        return False


async def _send_dead_letter(
    stage: Stage[Any, Any], record: Inbound, fault: Fault, version: str, ports: Ports
) -> Awaitable[Any]:
    metrics.DEAD_LETTERS.labels(stage.name, fault.reason).inc()
    metrics.RECORDS.labels(stage.name, "dead").inc()
    letter = dead_letter(record, stage.name, fault, version)
    return await ports.send(stage.source.dead_letters.name, letter.key, letter.value, letter.headers)


def with_provenance(output: Any, report: Report, maker: Maker, record: Inbound) -> Any:
    """The output with its source, origin, receiving time, releases, their generations and record id; without
    its text where that must not be kept.

    Nothing here depends on when the output is made, so a repeat of a record gives an equal output.
    """
    source = report.source or record.topic
    releases = {**report.releases, maker.stage: maker.version}
    versions = "+".join(releases.values())
    complete = replace(
        output,
        source=source,
        received_at=report.received_at or _received_at(record),
        releases=releases,
        record_id=f"{source}/{report.id}/{_fingerprint(report)}/{maker.stage}@{versions}",
        origin=report.origin,
        generations={**report.generations, maker.stage: maker.generation},
    )
    return complete if maker.keep_text else without_text(complete)


def _received_at(record: Inbound) -> datetime:
    """The broker's timestamp of a record; raises BadRecord where it is outside of the calendar."""
    try:
        return datetime.fromtimestamp(record.timestamp, UTC)
    except (ValueError, OverflowError, OSError):
        raise BadRecord("the timestamp of the record is out of range") from None


def _fingerprint(report: Report) -> str:
    """Eight hexadecimal digits of the text, time and drug: a report edited under its old id is no repeat."""
    content = encode((report.text, report.created_at, report.drug))
    return hashlib.blake2b(content, digest_size=4).hexdigest()
