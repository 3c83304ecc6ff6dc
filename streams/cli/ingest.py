"""Reads reports from a file and sends them to an input topic; invalid lines are refused, not sent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from models.files.text_file import OpenFile
from streams import topics
from streams.broker.consumer import kafka_producer, running_client
from streams.cli.feed import Tally, admit, counting_arrivals
from streams.cli.input import notes
from streams.cli.refusals import Refusals, RejectedFile
from streams.cli.terminal import say
from streams.input_reports import as_input
from streams.input_rows import Refusal, RowReader
from streams.pipe import PipeThread
from streams.records import Report
from streams.settings import Settings
from streams.topics import broker_name

#: Lines of a file that are read at a time.
LINES_AT_A_TIME = 256
#: Most sends that wait for the broker's confirmation.
MAX_UNCONFIRMED = 500
#: Seconds that a rate may be behind and is made up for: a sleep is often a little longer than asked for.
MAKE_UP_SECONDS = 0.1


class Sender:
    """An idempotent producer with a limited number of unconfirmed sends; an async context manager."""

    def __init__(self, settings: Settings) -> None:
        self._producer = kafka_producer(settings, linger_ms=5)
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
    """Limits a loop to `rate` turns per second; 0: no limit. Missed turns are not made up for."""

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
    """Reports for an input topic."""

    topic: str
    open: Callable[[], OpenFile]
    reader: RowReader
    size: int | None
    """Bytes; None for standard input."""
    rejected: Path | None = None
    """Where refused lines go."""


async def run_ingest(console: Console, file: InputFile, settings: Settings, rate: float) -> int:
    """Sends a file; the number of refused lines. Raises UnreadableFile and UnknownColumn."""
    tally = Tally()
    async with AsyncExitStack() as stack:
        # A pipe is opened later: its first line may come late. To close it would wait for the next.
        opened = None if file.size is None else stack.enter_context(file.open())
        await topics.require(settings, (topics.by_name(file.topic),))
        # An embedded broker drops what is not read in time: there the reports wait for capacity.
        if embedded := await topics.is_embedded(settings):
            await stack.enter_async_context(counting_arrivals(settings, tally))
        thread = stack.enter_context(PipeThread())
        if opened is None:
            opened = await thread.call(file.open)
        run = _Ingest(console, file, opened, thread, tally if embedded else None)
        return await run.send(Sender(settings), RateLimit(rate))


class _Ingest:
    """One file on its way to its topic."""

    def __init__(
        self, console: Console, file: InputFile, opened: OpenFile, thread: PipeThread, tally: Tally | None
    ) -> None:
        self._console = console
        self._file = file
        self._opened = opened
        self._thread = thread
        self._tally = tally
        self._sent = 0

    async def send(self, connection: Sender, limit: RateLimit) -> int:
        """Sends all reports; returns the number of refused lines."""
        topic = self._file.topic
        total = self._file.size if self._opened.has_lines else None
        unit = "line" if self._opened.has_lines else "row"
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        with (
            RejectedFile(self._file.rejected) as rejected,
            Progress(*columns, console=self._console, transient=True) as progress,
        ):
            refusals = Refusals(topic, rejected, unit, self._console)
            bar = progress.add_task(f"{topic}: 0 sent", total=total)
            async with connection as sender:
                async for item in self._items():
                    if isinstance(item, Refusal):
                        refusals.add(item)
                        continue
                    await limit.wait()
                    if self._tally is not None:
                        await admit(self._tally, topic, item)
                    await sender.send(topic, item)
                    self._sent += 1
                    done = self._opened.file.tell() if total else None
                    text = f"{topic}: {self._sent} sent, {refusals.total} refused"
                    progress.update(bar, description=text, completed=done)
        refusals.summarize()
        for note in notes(self._opened, self._file.reader):
            say(f"{topic}: {note}", self._console)
        say(f"{topic}: {self._sent} sent and confirmed, {refusals.total} lines refused", self._console)
        return refusals.total

    async def _items(self) -> AsyncIterator[Report | Refusal]:
        """Reads a file many lines at a time, and a pipe line by line, because its next line may come late.

        Reads in a thread: waiting for a line must not block the producer.
        """
        rows = (self._file.reader.read(row) for row in self._opened.rows)
        n = LINES_AT_A_TIME if self._file.size is not None else 1
        while items := await self._thread.call(lambda: list(islice(rows, n))):
            for item in items:
                yield item
