"""Reads reports from JSON Lines and sends them to an input topic; invalid lines are refused, not sent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import islice
from typing import Any, BinaryIO

from aiokafka import AIOKafkaProducer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from streams import topics
from streams.broker.consumer import running_client
from streams.cli.feed import Tally, admit, counting_arrivals
from streams.codec import BadRecord
from streams.input_reports import as_input, read_report
from streams.pipe import PipeThread
from streams.records import Report
from streams.settings import Settings
from streams.topics import MAX_MESSAGE, broker_name

#: A longer line could not become a message that every broker accepts; the rest of it is skipped, not kept in
#: memory.
MAX_LINE = MAX_MESSAGE - 4096
#: Refused lines that are printed one by one; the others are only counted.
REFUSALS_SHOWN = 20
#: Lines of a file that are read at a time.
LINES_AT_A_TIME = 256
#: Most sends that wait for the broker's confirmation.
MAX_UNCONFIRMED = 500
#: Seconds that a rate may be behind and is made up for: a sleep is often a little longer than asked for.
MAKE_UP_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Refusal:
    """A line that is not sent; `reason` does not quote it."""

    line: int
    reason: str


def read_reports(
    file: BinaryIO, parse: Callable[[bytes], Report] = read_report
) -> Iterator[Report | Refusal]:
    """A report or a refusal for each line that is not empty; `parse` raises BadRecord."""
    number = 0
    while line := file.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            while line and not line.endswith(b"\n"):
                line = file.readline(MAX_LINE)
            yield Refusal(number, f"longer than {MAX_LINE} bytes")
            continue
        if line.strip():
            try:
                yield parse(line)
            except BadRecord as error:
                yield Refusal(number, str(error))


class Sender:
    """An idempotent producer with a limited number of unconfirmed sends; an async context manager."""

    def __init__(self, settings: Settings) -> None:
        self._producer = AIOKafkaProducer(
            **settings.client(), acks="all", enable_idempotence=True, linger_ms=5
        )
        self._running = running_client(self._producer)
        self._settings = settings
        self._pending: list[Awaitable[Any]] = []

    async def __aenter__(self) -> Sender:
        await self._running.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self.confirm()
        finally:
            await self._running.__aexit__(None, None, None)

    async def send(self, topic: str, report: Report) -> None:
        """Sends a report; raises the error of an earlier send if that failed."""
        name = broker_name(self._settings, topic)
        self._pending.append(await self._producer.send(name, key=report.id.encode(), value=as_input(report)))
        if len(self._pending) >= MAX_UNCONFIRMED:
            await self.confirm()

    async def confirm(self) -> None:
        """Waits until everything sent is confirmed."""
        pending, self._pending = self._pending, []
        await asyncio.gather(*pending)


class RateLimit:
    """Limits a loop to `rate` turns per second; 0: no limit. What a loop that waited for something else has
    missed is not made up for at once.
    """

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._due = clock()

    async def wait(self) -> None:
        """Waits until the next turn is due."""
        if self._rate > 0:
            now = self._clock()
            self._due = max(self._due + 1 / self._rate, now - MAKE_UP_SECONDS)
            await asyncio.sleep(max(0.0, self._due - now))


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
