"""Runs the whole pipeline in one process on samples or files, and accounts for every record."""

from __future__ import annotations

import asyncio
import importlib.resources
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from models.files.text_file import OpenFile
from models.memory import peak_bytes
from streams.agents.pipeline import STAGES
from streams.broker.embedded import EmbeddedBroker
from streams.cli.feed import FINAL, Arrival, Tally, admit, counting_arrivals, wait_for_arrival
from streams.cli.ingest import Sender
from streams.cli.input import AS_IT_IS, HowToRead, notes
from streams.cli.refusals import RejectedFile
from streams.cli.store.page import page, temporary_settings
from streams.input_rows import Refusal, RowReader
from streams.records import Report
from streams.settings import Settings
from streams.store.follow import following
from streams.topics import INPUTS
from streams.worker import Worker


@dataclass(slots=True)
class Outcome:
    """The figures of a run."""

    tally: Tally = field(default_factory=Tally)
    refused: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """How files were read, where that is not obvious."""
    seconds: float = 0.0
    first_result_seconds: float | None = None
    """Until the first record on a topic of final results."""

    def note(self, topic: str, seconds: float) -> None:
        """Notes that a record has come out on a topic, `seconds` after the start."""
        if self.first_result_seconds is None and topic in FINAL:
            self.first_result_seconds = round(seconds, 2)

    @property
    def ok(self) -> bool:
        """Whether every report came out, each once."""
        return not self.tally.missing and not self.tally.duplicated

    def as_dict(self) -> dict[str, Any]:
        """The figures as `pvstream demo --report` writes them."""
        tally = self.tally
        finished = sum(tally.inputs.values()) - len(tally.missing)
        return {
            "inputs": dict(tally.inputs),
            "outputs": dict(tally.outputs),
            "refused": self.refused,
            "dead": tally.dead_letters,
            "missing": tally.missing,
            "duplicated": tally.duplicated,
            "seconds": round(self.seconds, 3),
            "records_per_second": round(finished / self.seconds, 2) if self.seconds else 0.0,
            "first_result_seconds": self.first_result_seconds,
            "peak_memory_bytes": peak_bytes(),
            "releases": dict(sorted(tally.releases.items())),
        }


def process_started() -> float:
    """The monotonic time at which this process started; now, where the system does not state it."""
    try:
        stat = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace")
        # Behind the name, which may hold anything, the twentieth field: ticks from the start of the machine.
        ticks = int(stat.rpartition(")")[2].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError):
        age = 0.0
    return time.monotonic() - age


def samples() -> dict[str, Path]:
    """The bundled samples by topic."""
    folder = importlib.resources.files("streams") / "samples"
    return {t.name: Path(str(folder / f"{t.name}.jsonl")) for t in INPUTS}


class Demo:
    """One run of the pipeline over the files of some input topics.

    `reading` is how the files are read, `limit` the most lines read from each file (0: all), `started` the
    monotonic time from which the time to the first result is counted. With `shown` the results go into a
    store of this run, of which a page is served.
    """

    def __init__(
        self,
        files: Mapping[str, Path],
        settings: Settings,
        *,
        reading: HowToRead = AS_IT_IS,
        limit: int = 0,
        started: float | None = None,
        shown: bool = False,
    ) -> None:
        self._files = files
        self._reading = reading
        self._settings = settings
        self._limit = limit
        self._shown = shown
        self._started = time.monotonic() if started is None else started
        self._opened: dict[str, OpenFile] = {}
        self.outcome = Outcome()

    def open_files(self) -> None:
        """Finds out what the files are, unless that is done; raises UnreadableFile for one without texts."""
        if not self._opened:
            self._opened = {topic: self._reading.open(path) for topic, path in self._files.items()}

    async def run(
        self,
        *,
        on_status: Callable[[str], None] = lambda text: None,
        on_arrival: Callable[[Arrival, Tally], None] = lambda arrival, tally: None,
        before_drain: Callable[[str], Awaitable[None]] | None = None,
    ) -> Outcome:
        """Sends everything, waits until it has come out of the stages, and drains the worker.

        `on_status` is called with each step of the start, `on_arrival` with each record and dead letter that
        comes out. `before_drain` is called with the addresses of the broker, the metrics and the page, and
        awaited. Raises UnreadableFile for a file that holds no texts, before anything starts.
        """

        def arrived(arrival: Arrival) -> None:
            self.outcome.note(arrival.topic, time.monotonic() - self._started)
            on_arrival(arrival, self.outcome.tally)

        self.open_files()
        with EmbeddedBroker(self._settings.prefix) as broker:
            settings = self._settings.model_copy(update={"broker": f"kafka://{broker.bootstrap}"})
            on_status(f"embedded broker on {broker.bootstrap}; loading models")
            worker = Worker(STAGES, settings, alone=True)
            counting = counting_arrivals(settings, self.outcome.tally, arrived)
            running = worker.running(lambda task: on_status(f"{task} loaded"))
            async with self._results(settings, worker) as page, running, counting as counter:
                await self._send_all(settings, counter)
                if before_drain is not None:
                    metrics = f"http://127.0.0.1:{worker.http_port}/metrics"
                    addresses = [f"broker {broker.bootstrap}", f"metrics {metrics}"]
                    await before_drain(", ".join(addresses + ([f"page {page}"] if page else [])))
        return self.outcome

    @asynccontextmanager
    async def _results(self, settings: Settings, worker: Worker) -> AsyncIterator[str]:
        """Stores the results of a run that is shown, beside the worker; gives the address of their page."""
        if not self._shown:
            yield ""
            return
        with temporary_settings(settings) as new:
            async with following(new) as task, page(new) as address:
                worker.beside.append(task)
                yield address

    async def _send_all(self, settings: Settings, counter: asyncio.Task[None]) -> None:
        """Sends and waits, as long as `counter`, which counts what comes out, does not fail."""
        sending = asyncio.create_task(self._send(settings))
        try:
            await asyncio.wait({counter, sending}, return_when=asyncio.FIRST_COMPLETED)
            for task in (counter, sending):
                if task.done():
                    task.result()
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)

    async def _send(self, settings: Settings) -> None:
        """Sends one report of each topic in turn, no faster than they come out; then waits for the last."""
        tally = self.outcome.tally
        began = time.monotonic()
        # A timeout is not raised: what has not come out by then is reported as missing.
        with suppress(TimeoutError), ExitStack() as stack:
            rejected = stack.enter_context(RejectedFile(self._reading.rejected))
            readers = {
                topic: self._reports(topic, stack.enter_context(opened), rejected)
                for topic, opened in self._opened.items()
            }
            async with Sender(settings) as sender:
                while readers:
                    for topic, reader in list(readers.items()):
                        report = next(reader, None)
                        if report is None:
                            del readers[topic]
                            continue
                        await admit(tally, topic, report)
                        await sender.send(topic, report)
            while tally.missing:
                await wait_for_arrival(tally)
        self.outcome.seconds = time.monotonic() - began

    def _reports(self, topic: str, opened: OpenFile, rejected: RejectedFile) -> Iterator[Report]:
        """The reports of a file; invalid lines and repeated ids are recorded as refused and left out."""
        reader = RowReader(self._files[topic].name, day_first=self._reading.day_first)
        for row in islice(opened.rows, self._limit or None):
            item = reader.read(row)
            if isinstance(item, Refusal):
                self.outcome.refused.append({"topic": topic, "line": item.line, "reason": item.reason})
                rejected.write(topic, item)
            elif self.outcome.tally.was_sent(topic, item.id):
                self.outcome.refused.append({"topic": topic, "id": item.id, "reason": "duplicate id"})
                rejected.write(topic, Refusal(row.number, "duplicate id", row.original))
            else:
                yield item
        self.outcome.notes += [f"{topic}: {note}" for note in notes(opened, reader)]
