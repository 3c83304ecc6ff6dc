"""What do the metrics cost? One stage with an empty model on an embedded broker, with and without metrics.

A run is cut into segments, in which the metrics are on and off by turns (on, off, off, on, ...), so that
whatever else the machine does falls on both alike. Off means that every counter, gauge and histogram does
nothing and nobody scrapes. On, /metrics is also read once a second, which is more often than Prometheus does.
With a real model the share of the metrics is far smaller: a record then takes milliseconds and not
microseconds.
"""

from __future__ import annotations

import asyncio
import statistics
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from unittest import mock

import orjson
import typer
from aiokafka import AIOKafkaProducer
from prometheus_client.metrics import MetricWrapperBase

from benchmarks.machine import print_and_write, provenance
from models.releases.loading import Loaded
from streams import metrics
from streams.broker.embedded import EmbeddedBroker
from streams.records import Report, TaggedReport, extend
from streams.releases.announcements import running_client
from streams.releases.handle import Handle
from streams.settings import Settings
from streams.stage import Stage
from streams.topics import MENTIONS, POSTS, broker_name
from streams.worker import Worker

#: Records until the worker has reached its speed; they are not measured.
WARM_UP = 2000
SCRAPE_SECONDS, POLL_SECONDS, RUN_SECONDS = 1.0, 0.05, 300.0
METRICS = tuple(name for name, value in vars(metrics).items() if isinstance(value, MetricWrapperBase))


class Off:
    """Stands for every metric: all of its methods do nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *values: self


@contextmanager
def without_metrics() -> Iterator[None]:
    """For the time of the block nothing is counted."""
    off: Any = {name: Off() for name in METRICS}
    with mock.patch.multiple(metrics, **off):
        yield


class Segment(NamedTuple):
    """Some records in turn, and the wall and processor seconds of this process for them."""

    on: bool
    wall: float
    cpu: float


class Meter:
    """A model that finds nothing, at once. It counts the records that it gets, and after each `size` of them
    ends a segment and begins the next one.
    """

    def __init__(self, size: int, modes: Sequence[bool]) -> None:
        self.segments: list[Segment] = []
        self.on = True
        self._size = size
        self._modes = list(modes)
        self._left = WARM_UP
        self._times = (0.0, 0.0)
        self._off = ExitStack()

    def predict(self, _: Any, reports: Sequence[Report]) -> list[TaggedReport]:
        self._left -= len(reports)
        if self._left <= 0:
            self._next_segment()
        return [extend(TaggedReport, report) for report in reports]

    @property
    def is_done(self) -> bool:
        return len(self.segments) == len(self._modes)

    def _next_segment(self) -> None:
        now = time.perf_counter(), time.process_time()
        if self._times[0] and not self.is_done:
            self.segments.append(Segment(self.on, now[0] - self._times[0], now[1] - self._times[1]))
        self._off.close()
        self.on = self.is_done or self._modes[len(self.segments)]
        if not self.on:
            self._off.enter_context(without_metrics())
        self._left, self._times = self._size, now


def one_run(size: int, modes: Sequence[bool]) -> list[Segment]:
    """A segment of about `size` records for each mode (True: with metrics)."""
    meter = Meter(size, modes)
    asyncio.run(_run(meter, WARM_UP + size * (len(modes) + 2)))
    return meter.segments


async def _run(meter: Meter, records: int) -> None:
    stage = Stage("ner", POSTS, MENTIONS, meter.predict)
    with EmbeddedBroker() as broker:
        settings = Settings(broker=f"kafka://{broker.bootstrap}", http_port=0)
        worker = Worker((stage,), settings)
        unused: Any = None
        worker.handles["ner"] = Handle(Loaded("ner", "0" * 12, "empty", unused, ([], [], 0.0)))
        await produce(settings, records)
        async with asyncio.timeout(RUN_SECONDS), worker.running():
            scraped_at = time.monotonic()
            while not meter.is_done:
                await asyncio.sleep(POLL_SECONDS)
                if meter.on and time.monotonic() - scraped_at > SCRAPE_SECONDS:
                    scraped_at = time.monotonic()
                    await asyncio.to_thread(scrape, worker.http_port)


async def produce(settings: Settings, records: int) -> None:
    topic = broker_name(settings, POSTS.name)
    async with running_client(AIOKafkaProducer(**settings.client(), linger_ms=5)) as producer:
        for i in range(records):
            value = orjson.dumps({"id": f"r{i}", "text": "zoloft gave me a headache"})
            await producer.send(topic, key=b"r%d" % i, value=value)
        await producer.flush()


def scrape(port: int) -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        answer.read()


def figures(segments: Sequence[Segment], size: int) -> dict[str, Any]:
    """The cost as a share of the time without metrics: of the sums, and of the medians of the segments."""
    on, off = ([s for s in segments if s.on is mode] for mode in (True, False))
    wall, cpu = ([s.wall for s in on], [s.wall for s in off]), ([s.cpu for s in on], [s.cpu for s in off])
    return {
        "records_per_segment": size,
        "segments": len(segments),
        "cost_of_wall_time": _more(sum, *wall),
        "cost_of_processor_time": _more(sum, *cpu),
        "cost_of_median_wall_time": _more(statistics.median, *wall),
        "cost_of_median_processor_time": _more(statistics.median, *cpu),
        "records_per_second_with": round(size / statistics.median(wall[0]), 1),
        "records_per_second_without": round(size / statistics.median(wall[1]), 1),
    }


def _more(summary: Callable[[list[float]], float], on: list[float], off: list[float]) -> float:
    return round(summary(on) / summary(off) - 1, 4)


def main(
    size: Annotated[int, typer.Option(min=100, help="records of a segment")] = 1000,
    segments: Annotated[int, typer.Option(min=4, max=20, help="segments of a run, a multiple of 4")] = 20,
    runs: Annotated[int, typer.Option(min=1)] = 10,
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    modes = [True, False, False, True] * (segments // 4)
    found = []
    for run in range(runs):
        found += one_run(size, modes if run % 2 else [not mode for mode in modes])
    print_and_write({**figures(found, size), **provenance("metrics_cost")}, result)


if __name__ == "__main__":
    typer.run(main)
