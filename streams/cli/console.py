"""The commands that talk to a person while they run: progress, results, tables."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from aiokafka import AIOKafkaConsumer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table

from streams import topics
from streams.cli.demo import Demo, Outcome, samples
from streams.cli.display import legend, render
from streams.cli.feed import Arrival, Tally, following, room
from streams.cli.ingest import Pace, Refusal, Sender, read_reports
from streams.codec import BadRecord, decode, encode
from streams.records import Report
from streams.settings import Settings
from streams.topics import Topic

#: Refused lines that are printed one by one; the rest is counted.
REFUSALS_SHOWN = 20


async def run_demo(
    console: Console,
    files: Mapping[str, Path] | None,
    settings: Settings,
    *,
    limit: int,
    show: int,
    keep: bool,
    started: float,
) -> Outcome:
    """Prints up to `show` results of each final topic and the counts at the end."""
    shown: Counter[str] = Counter()
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("starting", total=None)

        def note(text: str) -> None:
            progress.update(bar, description=text)

        def arrived(arrival: Arrival, tally: Tally) -> None:
            total = sum(tally.inputs.values())
            progress.update(bar, description="records", total=total, completed=total - len(tally.missing))
            if arrival.record is not None and arrival.topic in ("events", "summaries"):
                shown[arrival.topic] += 1
                if shown[arrival.topic] <= show:
                    progress.console.print(render(arrival.source, arrival.record))

        demo = Demo(files or samples(), settings, limit=limit, started=started, note=note, shown=arrived)
        if show:
            console.print(legend())

        async def stay(where: str) -> None:
            progress.stop()
            _print_outcome(console, demo.outcome)
            console.print(f"staying up, Ctrl-C ends: {where}")
            await _interrupted()

        outcome = await demo.run(stay if keep else None)
    if not keep:
        _print_outcome(console, outcome)
    return outcome


async def run_ingest(
    console: Console, topic: str, file: BinaryIO, size: int | None, settings: Settings, rate: float
) -> int:
    """Sends a file to a topic and gives the number of refused lines."""
    await topics.require(settings, (topics.by_name(topic),))
    tally = Tally()
    async with AsyncExitStack() as stack:
        if hold_back := await topics.is_embedded(settings):
            await stack.enter_async_context(following(settings, tally))
        return await _ingest(
            console, topic, file, size, Sender(settings), Pace(rate), tally if hold_back else None
        )


async def _ingest(
    console: Console,
    topic: str,
    file: BinaryIO,
    size: int | None,
    connecting: Sender,
    pace: Pace,
    tally: Tally | None,
) -> int:
    """With a tally, what has not come out of the stages holds back what goes in."""
    sent = refused = 0
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task(f"{topic}: 0 sent", total=size)
        async with connecting as sender:
            async for item in _read(read_reports(file, topic), 256 if size else 1):
                if isinstance(item, Refusal):
                    refused += 1
                    if refused <= REFUSALS_SHOWN:
                        progress.console.print(
                            f"line {item.line} refused: {item.reason}", highlight=False, markup=False
                        )
                    continue
                await pace.turn()
                if tally is not None:
                    length = len(encode(item))
                    await room(tally, length)
                    tally.went_in(topic, item.id, length)
                await sender.send(topic, item)
                sent += 1
                done = file.tell() if size else None
                progress.update(bar, description=f"{topic}: {sent} sent, {refused} refused", completed=done)
    console.print(f"{topic}: {sent} sent and confirmed, {refused} lines refused")
    return refused


async def _read(lines: Iterator[Report | Refusal], at_a_time: int) -> AsyncIterator[Report | Refusal]:
    """The lines of a file many at a time, those of a pipe, which may be long in coming, as they come.

    They are read in a thread: waiting for them must not stop the producer's own work.
    """
    while items := await asyncio.to_thread(lambda: list(islice(lines, at_a_time))):
        for item in items:
            yield item


async def run_tail(
    console: Console, topic: Topic[Any], settings: Settings, *, beginning: bool, count: int, json: bool
) -> None:
    """Prints records until `count` or Ctrl-C."""
    await topics.require(settings, (topic,))
    reset = "earliest" if beginning else "latest"
    consumer = AIOKafkaConsumer(topic.name, **settings.client(), group_id=None, auto_offset_reset=reset)
    await consumer.start()
    printed = 0
    try:
        async for message in consumer:
            if json:
                console.out((message.value or b"").decode(errors="replace"), highlight=False)
            else:
                _print_message(console, topic, message)
            printed += 1
            if count and printed >= count:
                break
    except asyncio.CancelledError:
        pass
    finally:
        await consumer.stop()


async def run_topics(console: Console, settings: Settings, *, create: bool) -> None:
    """The table of topics beside what the broker has."""
    made = await topics.create(settings) if create else []
    have = await topics.partition_counts(settings)
    table = Table("topic", "partitions", "cleanup", "retention", "on the broker")
    for topic in topics.TOPICS:
        there = f"{have[topic.name]} partitions" if topic.name in have else "missing"
        kept = "for ever" if topic.compacted else f"{topic.retention_ms // topics.DAY} days"
        state = there + (" (created)" if topic.name in made else "")
        table.add_row(topic.name, str(topic.partitions), topic.configuration()["cleanup.policy"], kept, state)
    console.print(table)


def _print_message(console: Console, topic: Topic[Any], message: Any) -> None:
    where = f"{topic.name}/{message.partition}@{message.offset}"
    if topic.record is None:
        headers = ", ".join(f"{k}={v.decode(errors='replace')}" for k, v in message.headers)
        key = (message.key or b"").decode(errors="replace")
        console.print(f"{where} {key} {headers}", highlight=False, markup=False)
        return
    try:
        console.print(render(topic.name, decode(topic.record, message.value)))
    except BadRecord as error:
        console.print(f"{where}: no record: {error}", highlight=False, markup=False)


def _print_outcome(console: Console, outcome: Outcome) -> None:
    summary = outcome.as_dict()
    table = Table("topic", "in", "out", "dead")
    dead = Counter(d["topic"].removesuffix(".dead") for d in summary["dead"])
    for name in dict.fromkeys([*summary["inputs"], *summary["outputs"], *dead]):
        cells = (summary["inputs"].get(name, ""), summary["outputs"].get(name, ""), dead.get(name, 0))
        table.add_row(name, *(str(c) for c in cells))
    console.print(table)
    for refusal in summary["refused"][:REFUSALS_SHOWN]:
        place = f"line {refusal['line']}" if "line" in refusal else refusal["id"]
        console.print(
            f"{refusal['topic']}, {place} refused: {refusal['reason']}", highlight=False, markup=False
        )
    more = len(summary["refused"]) - REFUSALS_SHOWN
    if more > 0:
        console.print(f"... and {more} lines more that were refused")
    releases = ", ".join(f"{task} {version}" for task, version in summary["releases"].items())
    console.print(f"releases: {releases}", highlight=False)
    n = {name: len(summary[name]) for name in ("missing", "duplicated", "dead")}
    rate, first = summary["records_per_second"], summary["first_result_seconds"]
    console.print(
        f"{sum(summary['inputs'].values())} records in {summary['seconds']:.1f} s = {rate:.1f} a second; "
        f"first result {first} s after the start; "
        f"missing {n['missing']}, duplicated {n['duplicated']}, dead {n['dead']}; "
        f"peak memory {summary['peak_memory_bytes'] / 1e9:.2f} GB",
        highlight=False,
    )


async def _interrupted() -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for sign in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(sign, stop.set)
    await stop.wait()
