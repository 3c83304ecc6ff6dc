"""The whole pipeline in one process over samples or files: every result shown, every record accounted for."""

from __future__ import annotations

import asyncio
import importlib.resources
import resource
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from streams.broker.embedded import EmbeddedBroker
from streams.cli.feed import Arrival, Tally, following, next_arrival, room
from streams.cli.ingest import Refusal, Sender, read_reports
from streams.codec import encode
from streams.pipeline import STAGES
from streams.settings import Settings
from streams.topics import INPUTS
from streams.worker import Worker


@dataclass(slots=True)
class Outcome:
    """What a run did, as `--report` writes it."""

    tally: Tally = field(default_factory=Tally)
    refused: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    first_result_seconds: float | None = None

    @property
    def ok(self) -> bool:
        return not self.tally.missing and not self.tally.duplicated

    def as_dict(self) -> dict[str, Any]:
        tally = self.tally
        finished = sum(tally.inputs.values()) - len(tally.missing)
        return {
            "inputs": dict(tally.inputs),
            "outputs": dict(tally.outputs),
            "refused": self.refused,
            "dead": tally.dead,
            "missing": tally.missing,
            "duplicated": tally.duplicated,
            "seconds": round(self.seconds, 3),
            "records_per_second": round(finished / self.seconds, 2) if self.seconds else 0.0,
            "first_result_seconds": self.first_result_seconds,
            "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            "releases": dict(sorted(tally.releases.items())),
        }


def samples() -> dict[str, Path]:
    """The bundled samples by topic."""
    folder = importlib.resources.files("streams") / "samples"
    return {t.name: Path(str(folder / f"{t.name}.jsonl")) for t in INPUTS}


class Demo:
    """Runs once; `note` is told how the start goes, `shown` of every arrival."""

    def __init__(
        self,
        files: Mapping[str, Path],
        settings: Settings,
        *,
        limit: int = 0,
        started: float | None = None,
        note: Callable[[str], None] = lambda text: None,
        shown: Callable[[Arrival, Tally], None] = lambda arrival, tally: None,
    ) -> None:
        self._files = files
        self._settings = settings
        self._limit = limit
        self._started = time.monotonic() if started is None else started
        self._note = note
        self._shown = shown
        self.outcome = Outcome()

    async def run(self, keep: Callable[[str], Any] | None = None) -> Outcome:
        """Feeds everything, waits until it has come out, and drains; with `keep`, awaits that before it
        drains.
        """
        with EmbeddedBroker() as broker:
            settings = self._settings.model_copy(update={"broker": f"kafka://{broker.bootstrap}"})
            self._note(f"embedded broker on {broker.bootstrap}; loading models")
            worker = Worker(STAGES, settings)
            await worker.load(lambda task: self._note(f"{task} loaded"))
            follow = following(settings, self.outcome.tally, self._arrived)
            async with worker.running(), follow as collecting:
                feeding = asyncio.create_task(self._feed(settings))
                try:
                    await asyncio.wait({collecting, feeding}, return_when=asyncio.FIRST_COMPLETED)
                    for task in (collecting, feeding):
                        if task.done():
                            task.result()
                finally:
                    feeding.cancel()
                    await asyncio.gather(feeding, return_exceptions=True)
                if keep is not None:
                    where = f"http://127.0.0.1:{worker.http_port}/metrics"
                    await keep(f"broker {broker.bootstrap}, metrics {where}")
        return self.outcome

    async def _feed(self, settings: Settings) -> None:
        """One report of each topic in turn, no faster than they come out; then waits for the last."""
        tally = self.outcome.tally
        began = time.monotonic()
        # A standstill is not raised: what has not come out by then is reported as missing.
        with suppress(TimeoutError), ExitStack() as stack:
            readers = {
                topic: self._reports(stack.enter_context(path.open("rb")), topic)
                for topic, path in self._files.items()
            }
            async with Sender(settings) as sender:
                while readers:
                    for topic, reader in list(readers.items()):
                        report = next(reader, None)
                        if report is None:
                            del readers[topic]
                            continue
                        size = len(encode(report))
                        await room(tally, size)
                        tally.went_in(topic, report.id, size)
                        await sender.send(topic, report)
            while tally.missing:
                await next_arrival(tally)
        self.outcome.seconds = time.monotonic() - began

    def _reports(self, file: BinaryIO, topic: str) -> Iterator[Any]:
        """Reports of a file; refusals, and ids that were there before, are noted and left out."""
        lines = read_reports(file, topic)
        for item in islice(lines, self._limit) if self._limit else lines:
            if isinstance(item, Refusal):
                self.outcome.refused.append({"topic": topic, "line": item.line, "reason": item.reason})
            elif self.outcome.tally.has(topic, item.id):
                self.outcome.refused.append({"topic": topic, "id": item.id, "reason": "id was there before"})
            else:
                yield item

    def _arrived(self, arrival: Arrival) -> None:
        if self.outcome.first_result_seconds is None:
            self.outcome.first_result_seconds = round(time.monotonic() - self._started, 2)
        self._shown(arrival, self.outcome.tally)
