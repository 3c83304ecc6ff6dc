"""The stage: decode, infer with one model snapshot, send, wait for the broker's confirmation, ack in offset
order.

At least once: a record is acked after its output (or its dead letter) is confirmed, never before. Whatever is
not the fault of a single record is raised, the process ends, and the broker delivers the records again.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from models.releases.loading import Loaded
from streams import metrics
from streams.codec import BadRecord, decode, encode
from streams.dead_letters.headers import Fault, describe, headers
from streams.records import Headers, Inbound, Report
from streams.topics import Topic

In = TypeVar("In", bound=Report)
Out = TypeVar("Out", bound=Report)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Stage(Generic[In, Out]):
    """One step of the flow. `predict` is synchronous, does no I/O and returns one output for each input."""

    name: str
    source: Topic[In]
    sink: Topic[Out]
    predict: Callable[[Any, Sequence[In]], Sequence[Out]]
    count: Callable[[Sequence[Out]], None] | None = None
    """Feeds the stage's own counters with the outputs of a batch, once they are sent."""


@dataclass(frozen=True, slots=True)
class Done:
    """A source record, what was read from it and what the live model made of it."""

    record: Inbound
    report: Any
    output: Any


class StageBroken(RuntimeError):
    """The model fails on its canary: not a record is at fault but this process."""


class Ports(Protocol):
    """What a stage needs of the world around it."""

    max_output_bytes: int

    def snapshot(self) -> Loaded: ...

    async def infer(self, work: Callable[[], T], /) -> T: ...

    async def send(
        self, topic: str, key: bytes | None, value: bytes | None, headers: Headers, /
    ) -> Awaitable[Any]:
        """Hands a record to the producer; awaiting the result waits for the broker's confirmation."""

    async def ack(self, record: Inbound, /) -> None: ...

    def observe(self, done: Sequence[Done], /) -> None:
        """Is shown what a batch became, once it is handed to the producer; must neither wait nor raise."""


async def run_stage(stage: Stage[Any, Any], batches: AsyncIterator[Sequence[Inbound]], ports: Ports) -> None:
    """Runs until the batches end. While a batch waits for its confirmations the next one may infer, but not a
    third.
    """
    confirming: asyncio.Task[None] | None = None
    try:
        # The group ends the wait for the next batch as soon as a confirmation fails.
        async with asyncio.TaskGroup() as group:
            async for batch in batches:
                deliveries = await _process(stage, batch, ports)
                before, confirming = (
                    confirming,
                    group.create_task(_confirm(stage, batch, deliveries, confirming, ports)),
                )
                if before is not None:
                    await before
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None


async def _process(stage: Stage[Any, Any], batch: Sequence[Inbound], ports: Ports) -> list[Awaitable[Any]]:
    """The delivery of each record of the batch, in its order."""
    metrics.BATCH.labels(stage.name).observe(len(batch))
    loaded = ports.snapshot()
    decoded = [_decode(stage, record) for record in batch]
    good = [d for d in decoded if not isinstance(d, Fault)]
    started = time.perf_counter()
    answers = iter(await _answer(stage, loaded, good, ports) if good else [])
    metrics.INFER.labels(stage.name).observe(time.perf_counter() - started)
    deliveries: list[Awaitable[Any]] = []
    done = []
    for record, report in zip(batch, decoded, strict=True):
        answer = report if isinstance(report, Fault) else next(answers)
        if not isinstance(answer, Fault):
            output = stamp(answer, report, stage.name, loaded.version, record)
            value = encode(output)
            if len(value) <= ports.max_output_bytes:
                deliveries.append(await ports.send(stage.sink.name, output.id.encode(), value, ()))
                metrics.RECORDS.labels(stage.name, "sent").inc()
                done.append(Done(record, report, output))
                continue
            answer = Fault("output_too_large", f"{len(value)} bytes, {ports.max_output_bytes} may be sent")
        deliveries.append(await _bury(stage, record, answer, loaded.version, ports))
    if stage.count is not None:
        stage.count([d.output for d in done])
    ports.observe(done)
    return deliveries


async def _confirm(
    stage: Stage[Any, Any],
    batch: Sequence[Inbound],
    deliveries: Sequence[Awaitable[Any]],
    before: asyncio.Task[None] | None,
    ports: Ports,
) -> None:
    """Acks the batch once every delivery of it is confirmed and the batch before it is acked."""
    started = time.perf_counter()
    await asyncio.gather(*deliveries)
    metrics.DELIVER.labels(stage.name).observe(time.perf_counter() - started)
    if before is not None:
        await before
    now = time.time()
    for record in batch:
        await ports.ack(record)
        metrics.LATENCY.labels(stage.name).observe(max(0.0, now - record.timestamp))


def _decode(stage: Stage[Any, Any], record: Inbound) -> Any:
    assert stage.source.record is not None
    try:
        return decode(stage.source.record, record.value)
    except BadRecord as error:
        return Fault("bad_record", str(error))


async def _answer(stage: Stage[Any, Any], loaded: Loaded, reports: Sequence[Any], ports: Ports) -> list[Any]:
    """An output or a fault for each report. On an error the batch is halved, down to the record that causes
    it.
    """
    try:
        outputs = await ports.infer(partial(_predict, stage, loaded, reports))
    except Exception as error:
        if len(reports) > 1:
            middle = len(reports) // 2
            first = await _answer(stage, loaded, reports[:middle], ports)
            return first + await _answer(stage, loaded, reports[middle:], ports)
        if not await _canary_passes(loaded, ports):
            raise StageBroken(
                f"{stage.name} {loaded.version} fails on its canary: {describe(error)}"
            ) from error
        return [Fault("poison", describe(error))]
    return list(outputs)


def _predict(stage: Stage[Any, Any], loaded: Loaded, reports: Sequence[Any]) -> Sequence[Any]:
    outputs = stage.predict(loaded.model, reports)
    if len(outputs) != len(reports):
        raise RuntimeError(f"{len(outputs)} outputs for {len(reports)} reports")
    return outputs


async def _canary_passes(loaded: Loaded, ports: Ports) -> bool:
    try:
        return await ports.infer(loaded.passes_canary)
    except Exception:
        return False


async def _bury(
    stage: Stage[Any, Any], record: Inbound, fault: Fault, version: str, ports: Ports
) -> Awaitable[Any]:
    metrics.DEAD_LETTERS.labels(stage.name, fault.reason).inc()
    metrics.RECORDS.labels(stage.name, "dead").inc()
    why = headers(record, stage.name, fault, version)
    return await ports.send(stage.source.dead.name, record.key, record.value, why)


def stamp(output: Any, report: Report, stage: str, version: str, record: Inbound) -> Any:
    """Where the output comes from. Nothing here depends on when it is made, so a repeat is equal to the
    first.
    """
    source = report.source or record.topic
    releases = {**report.releases, stage: version}
    received = report.received_at or datetime.fromtimestamp(record.timestamp, UTC)
    chain = "+".join(releases.values())
    record_id = f"{source}/{report.id}/{_fingerprint(report)}/{stage}@{chain}"
    return replace(output, source=source, received_at=received, releases=releases, record_id=record_id)


def _fingerprint(report: Report) -> str:
    """Eight digits of what the source said: an edited report under its old id is no repeat."""
    said = encode((report.text, report.created_at, report.drug))
    return hashlib.blake2b(said, digest_size=4).hexdigest()
