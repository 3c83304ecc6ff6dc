"""How much processor time do the metrics need? One stage with an empty model on an embedded broker.

Every call of a metric is recorded while records pass, and then repeated and timed alone: the share is the
processor time of the calls per record, over that of the worker's threads per record. A request for /metrics
is timed too. Both are processor times of threads, which a busy machine changes little. As a check the metrics
are switched on and off in turn (on, off, off, on, ...), which a busy machine does disturb. With a real model
the share is far smaller: a record then takes milliseconds, not microseconds.
"""

from __future__ import annotations

import asyncio
import statistics
import threading
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
from streams.broker.consumer import running_client
from streams.broker.embedded import EmbeddedBroker
from streams.records import Report, TaggedReport, extend
from streams.releases.handle import Handle
from streams.settings import Settings
from streams.stage import Stage
from streams.topics import MENTIONS, POSTS, broker_name
from streams.worker import Worker
from training.common.program_help import run_program

#: Records until the worker has reached its speed; they are not measured.
WARM_UP = 2000
#: Prefix of the names of the threads of asyncio's own pool, in which the scraper runs.
SCRAPER = "asyncio_"
#: Seconds between two requests of Prometheus, in its usual configuration.
SCRAPE_SECONDS = 15.0
SCRAPES, REPLAYS = 20, 50
POLL_SECONDS, RUN_SECONDS = 0.05, 300.0
METRICS = tuple(name for name, value in vars(metrics).items() if isinstance(value, MetricWrapperBase))
Call = tuple[Callable[..., Any], tuple[Any, ...]]
"""A method of a metric, and its arguments."""


class Off:
    """Replaces every metric; its methods do nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *values: self


class Noted:
    """Wraps a metric, or one of its children, and records each call in `calls`."""

    def __init__(self, real: Any, calls: list[Call]) -> None:
        self._real = real
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._real, name)

        def call(*values: Any) -> Any:
            self._calls.append((method, values))
            answer = method(*values)
            return Noted(answer, self._calls) if name == "labels" else answer

        return call


@contextmanager
def replaced(stand_in: Callable[[Any], Any]) -> Iterator[None]:
    """Replaces every metric while the block runs."""
    stand_ins: Any = {name: stand_in(getattr(metrics, name)) for name in METRICS}
    with mock.patch.multiple(metrics, **stand_ins):
        yield


def replayed(calls: Sequence[Call]) -> float:
    """Processor seconds of the repeated calls: the median of several repetitions."""
    seconds = []
    for _ in range(REPLAYS):
        started = time.thread_time()
        for method, values in calls:
            method(*values)
        seconds.append(time.thread_time() - started)
    return statistics.median(seconds)


def worker_cpu() -> float:
    """Processor seconds of the worker's running threads: event loops and inference. The threads of the
    embedded broker are not Python threads and do not count.
    """
    clocks = [
        time.pthread_getcpuclockid(thread.ident)
        for thread in threading.enumerate()
        if thread.ident is not None and not thread.name.startswith(SCRAPER)
    ]
    return sum(time.clock_gettime(clock) for clock in clocks)


class Segment(NamedTuple):
    """Consecutive records, and the processor seconds of the worker's threads for them."""

    on: bool
    cpu: float


class Meter:
    """A model that finds nothing and needs no time. It counts its records, and after each `size` of them ends
    a segment and begins the next one. The calls of the metrics are recorded in one more segment.
    """

    def __init__(self, size: int, modes: Sequence[bool]) -> None:
        self.segments: list[Segment] = []
        self.calls: list[Call] = []
        self.scrape_cpu = 0.0
        self.is_done = False
        self._size = size
        self._modes = list(modes)
        self._left = WARM_UP
        self._started: float | None = None
        self._stand_ins = ExitStack()

    def predict(self, _: Any, reports: Sequence[Report]) -> list[TaggedReport]:
        self._left -= len(reports)
        if self._left <= 0 and not self.is_done:
            self._next_segment()
        return [extend(TaggedReport, report) for report in reports]

    def _next_segment(self) -> None:
        self._end_segment(worker_cpu())
        self._stand_ins.close()
        if self.is_done:
            return
        if len(self.segments) == len(self._modes):
            self._stand_ins.enter_context(replaced(lambda metric: Noted(metric, self.calls)))
        elif not self._modes[len(self.segments)]:
            self._stand_ins.enter_context(replaced(lambda metric: Off()))
        self._left, self._started = self._size, worker_cpu()

    def _end_segment(self, cpu: float) -> None:
        if self._started is None:
            return
        if len(self.segments) < len(self._modes):
            self.segments.append(Segment(self._modes[len(self.segments)], cpu - self._started))
        else:
            self.is_done = True


def one_run(size: int, modes: Sequence[bool]) -> Meter:
    """A segment of about `size` records for each mode (True: with metrics), and one for the calls."""
    meter = Meter(size, modes)
    asyncio.run(_run(meter, WARM_UP + size * (len(modes) + 3)))
    return meter


async def _run(meter: Meter, records: int) -> None:
    stage = Stage("ner", POSTS, MENTIONS, meter.predict)
    with EmbeddedBroker() as broker:
        settings = Settings(broker=f"kafka://{broker.bootstrap}", http_port=0)
        worker = Worker((stage,), settings)
        unused: Any = None
        worker.handles["ner"] = Handle(Loaded("ner", "0" * 12, "empty", unused, ([], [], 0.0)))
        await produce(settings, records)
        async with asyncio.timeout(RUN_SECONDS), worker.running():
            while not meter.is_done:  # noqa: ASYNC110  it is in another thread
                await asyncio.sleep(POLL_SECONDS)
            # Little else runs in this thread now, so its processor time is that of the answer.
            started = time.thread_time()
            for _ in range(SCRAPES):
                await asyncio.to_thread(scrape, worker.http_port)
            meter.scrape_cpu = (time.thread_time() - started) / SCRAPES


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


def figures(
    segments: Sequence[Segment], size: int, calls: Sequence[Call], scrape_cpu: float
) -> dict[str, Any]:
    """Shares of the worker's processor time. Of the runs with metrics on and off by turns: the median and the
    quartiles of the ratios in four segments.
    """
    on, off = (statistics.median(s.cpu for s in segments if s.on is mode) / size for mode in (True, False))
    of_calls = replayed(calls) / size
    blocks = [segments[i : i + 4] for i in range(0, len(segments), 4)]
    ratios = [sum(s.cpu for s in b if s.on) / sum(s.cpu for s in b if not s.on) - 1 for b in blocks]
    low, middle, high = statistics.quantiles(ratios, n=4)
    return {
        "segments": len(segments),
        "records_per_segment": size,
        "calls_a_record": round(len(calls) / size, 2),
        "microseconds_of_metrics_a_record": round(1e6 * of_calls, 2),
        "microseconds_of_processor_a_record": round(1e6 * on, 1),
        "microseconds_of_processor_a_record_without": round(1e6 * off, 1),
        "share_of_metrics": round(of_calls / on, 4),
        "milliseconds_of_processor_a_scrape": round(1e3 * scrape_cpu, 2),
        "share_of_scrapes_every_15_s": round(scrape_cpu / SCRAPE_SECONDS, 5),
        "on_against_off": round(middle, 4),
        "on_against_off_quartiles": f"{low:.4f} to {high:.4f}",
    }


def main(
    size: Annotated[int, typer.Option(min=100, help="records of a segment")] = 500,
    segments: Annotated[int, typer.Option(min=8, max=40, help="segments of a run, a multiple of 4")] = 40,
    runs: Annotated[int, typer.Option(min=1, help="number of runs")] = 6,
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    modes = [True, False, False, True] * (segments // 4)
    meters = [one_run(size, modes if run % 2 else [not mode for mode in modes]) for run in range(runs)]
    found = [segment for meter in meters for segment in meter.segments]
    cpu = statistics.median(meter.scrape_cpu for meter in meters)
    print_and_write(
        {**figures(found, size, meters[0].calls, cpu), **provenance("operation.metrics_cost")}, result
    )


if __name__ == "__main__":
    run_program(main)
