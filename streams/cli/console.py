"""What the commands ingest, tail and topics do and print while they run."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, BinaryIO

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from streams import topics
from streams.broker.consumer import kafka_consumer, running_client
from streams.broker.ranges import read_chunks
from streams.broker.topic_check import differences
from streams.cli.display import plain_text, render
from streams.cli.feed import Tally, admit, counting_arrivals
from streams.cli.ingest import RateLimit, Refusal, Sender, read_reports
from streams.cli.terminal import progress_bar
from streams.codec import BadRecord, decode
from streams.inputs import read_report
from streams.order import Latest, read_revision
from streams.pipe import PipeThread
from streams.records import Inbound, Report
from streams.settings import Settings
from streams.topics import Topic

#: Refused lines that are printed one by one; the others are only counted.
REFUSALS_SHOWN = 20
#: Lines of a file that are read at a time.
LINES_AT_A_TIME = 256


@dataclass(frozen=True, slots=True)
class InputFile:
    """Lines for an input topic."""

    topic: str
    lines: BinaryIO
    size: int | None
    """Bytes; None for standard input."""
    parse: Callable[[bytes], Report] = read_report
    """The report in a line."""


async def run_ingest(console: Console, file: InputFile, settings: Settings, rate: float) -> int:
    """Sends a file to its topic, at most `rate` reports per second (0: no limit); returns the number of
    refused lines.
    """
    await topics.require(settings, (topics.by_name(file.topic),))
    tally = Tally()
    async with AsyncExitStack() as stack:
        # An embedded broker drops what is not read in time: there the reports wait for capacity.
        if embedded := await topics.is_embedded(settings):
            await stack.enter_async_context(counting_arrivals(settings, tally))
        return await _ingest(console, file, Sender(settings), RateLimit(rate), tally if embedded else None)


async def _ingest(
    console: Console, file: InputFile, connection: Sender, limit: RateLimit, tally: Tally | None
) -> int:
    sent = refused = 0
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task(f"{file.topic}: 0 sent", total=file.size)
        async with connection as sender:
            async for item in _read(file):
                if isinstance(item, Refusal):
                    refused += 1
                    if refused <= REFUSALS_SHOWN:
                        progress.console.print(
                            f"line {item.line} refused: {item.reason}", highlight=False, markup=False
                        )
                    continue
                await limit.wait()
                if tally is not None:
                    await admit(tally, file.topic, item)
                await sender.send(file.topic, item)
                sent += 1
                done = file.lines.tell() if file.size else None
                text = f"{file.topic}: {sent} sent, {refused} refused"
                progress.update(bar, description=text, completed=done)
    console.print(f"{file.topic}: {sent} sent and confirmed, {refused} lines refused")
    return refused


async def _read(file: InputFile) -> AsyncIterator[Report | Refusal]:
    """Reads a file many lines at a time, and a pipe line by line, because its next line may come late.

    Reads in a thread: waiting for a line must not block the producer.
    """
    lines, n = read_reports(file.lines, file.parse), LINES_AT_A_TIME if file.size else 1
    with PipeThread() as thread:
        while items := await thread.call(lambda: list(islice(lines, n))):
            for item in items:
                yield item


async def run_tail(
    console: Console, topic: Topic[Any], settings: Settings, *, beginning: bool, count: int, json: bool
) -> None:
    """Prints records until there were `count` of them (0: no limit), or until Ctrl-C."""
    await topics.require(settings, (topic,))
    reset = "earliest" if beginning else "latest"
    consumer = kafka_consumer(settings, topic.name, group_id=None, auto_offset_reset=reset)
    printed = 0
    with suppress(CancelledError):
        async with running_client(consumer):
            async for message in consumer:
                _print(console, topic, message, json=json)
                printed += 1
                if count and printed >= count:
                    break


async def run_until_end(
    console: Console, topic: Topic[Any], settings: Settings, *, count: int, json: bool
) -> None:
    """Prints the records that are in the topic at the start, at most `count` of them (0: no limit)."""
    printed = 0
    chunks = read_chunks(settings, topic, "beginning", "end", lambda done, total: None)
    async with aclosing(chunks):
        async for records in chunks:
            for record in records:
                _print(console, topic, record, json=json)
                printed += 1
                if printed == count:
                    return


async def run_latest(
    console: Console, topic: Topic[Any], settings: Settings, *, count: int, json: bool
) -> None:
    """Prints the latest record of each key in the topic up to its present end, at most `count` of them (0: no
    limit), in the order of their last change. Deleted keys are left out.
    """
    latest: Latest[Inbound] = Latest()
    with progress_bar(f"reading {topic.name}") as progress:
        async for records in read_chunks(settings, topic, "beginning", "end", progress):
            for record in records:
                _offer(console, topic, record, latest)
    for _, record in islice(latest.items(), count or None):
        _print(console, topic, record, json=json)


def _offer(console: Console, topic: Topic[Any], record: Inbound, latest: Latest[Inbound]) -> None:
    """Offers a record to the upsert; one without a key replaces no other."""
    key = record.key if record.key is not None else (record.partition, record.offset)
    try:
        revision = read_revision(topic, record)
    except BadRecord:
        _print_message(console, topic, record)
        return
    latest.offer(key, revision, record if record.value is not None else None)


def _print(console: Console, topic: Topic[Any], message: Any, *, json: bool) -> None:
    if json:
        console.out((message.value or b"").decode(errors="replace"), highlight=False)
    else:
        _print_message(console, topic, message)


def _print_message(console: Console, topic: Topic[Any], message: Any) -> None:
    place = f"{topic.name}/{message.partition}@{message.offset}"
    if topic.record is None:
        headers = ", ".join(f"{k}={(v or b'').decode(errors='replace')}" for k, v in message.headers)
        key = (message.key or b"").decode(errors="replace")
        console.print(plain_text(f"{place} {key} {headers}"))
        return
    if message.value is None:
        key = (message.key or b"").decode(errors="replace")
        console.print(plain_text(f"{place} {key} deleted"))
        return
    try:
        console.print(render(topic.name, decode(topic.record, message.value)))
    except BadRecord as error:
        console.print(f"{place}: not a valid record: {error}", highlight=False, markup=False)


async def run_topics(console: Console, settings: Settings, *, create: bool) -> bool:
    """Prints each topic with its settings and its state on the broker, and the differences; `create` first
    creates the missing ones. Returns whether the pipeline can work with all of them.
    """
    created = await topics.create(settings) if create else []
    partitions = await topics.partition_counts(settings)
    table = Table("topic", "partitions", "cleanup", "retention", "on the broker")
    for topic in topics.TOPICS:
        name, wanted = topic.name, topic.partitions or settings.partitions
        state = f"{partitions[name]} partitions" if name in partitions else "missing"
        retention = (
            "unlimited"
            if topic.compacted or topic.retention_ms < 0
            else f"{topic.retention_ms // topics.DAY} days"
        )
        state += " (created)" if name in created else ""
        cells = (str(wanted), topic.cleanup, retention, state)
        table.add_row(topics.broker_name(settings, name), *cells)
    console.print(table)
    if await topics.is_embedded(settings):
        console.print("an embedded broker: its topics cannot be configured", highlight=False)
        return True
    found = await differences(settings)
    for difference in found:
        console.print(str(difference), highlight=False, markup=False, soft_wrap=True)
    return not any(d.problem for d in found)
