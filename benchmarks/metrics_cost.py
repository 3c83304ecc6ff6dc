"""What do the metrics cost? One stage with an empty model on an embedded broker, with and without metrics.

The runs alternate within one process, in pairs whose order changes, so that whatever else the machine does
falls on both. Without metrics every counter, gauge and histogram does nothing and nobody scrapes; with them
/metrics is also read once a second, which is more often than Prometheus does. With a real model the share of
the metrics is far smaller, because a record then takes milliseconds and not microseconds.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any
from unittest import mock

import typer
from aiokafka import AIOKafkaProducer
from prometheus_client.metrics import MetricWrapperBase

from benchmarks.machine import print_and_write, provenance
from models.releases.loading import Loaded
from streams import metrics
from streams.broker.consumer import kafka_consumer
from streams.broker.embedded import EmbeddedBroker
from streams.records import Report, TaggedReport, extend
from streams.releases.announcements import running_client
from streams.releases.handle import Handle
from streams.settings import Settings
from streams.stage import Stage
from streams.topics import MENTIONS, POSTS, broker_name
from streams.worker import Worker

#: Records until the worker has reached its speed; they are not measured.
WARM_UP = 1000
SCRAPE_SECONDS = 1.0
RUN_SECONDS = 300.0


def nothing(_: Any, reports: Sequence[Report]) -> list[TaggedReport]:
    """The output of a model that finds nothing, at once."""
    return [extend(TaggedReport, report) for report in reports]


STAGE = Stage("ner", POSTS, MENTIONS, nothing)


class Off:
    """Stands for every metric: all of its methods do nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *values: self


@contextmanager
def without_metrics() -> Iterator[None]:
    """For the time of the block nothing is counted."""
    off: Any = {name: Off() for name, value in vars(metrics).items() if isinstance(value, MetricWrapperBase)}
    with mock.patch.multiple(metrics, **off):
        yield


async def one_run(records: int, *, scraped: bool) -> tuple[float, float]:
    """Wall seconds and processor seconds of this process for `records` records, start and warm-up aside."""
    with EmbeddedBroker() as broker:
        settings = Settings(broker=f"kafka://{broker.bootstrap}", http_port=0)
        worker = Worker((STAGE,), settings)
        unused: Any = None
        worker.handles["ner"] = Handle(Loaded("ner", "0" * 12, "empty", unused, ([], [], 0.0)))
        await produce(settings, records + WARM_UP)
        outputs = kafka_consumer(settings, MENTIONS.name, group_id=None, auto_offset_reset="earliest")
        async with running_client(outputs), worker.running(), asyncio.timeout(RUN_SECONDS):
            scraper = asyncio.create_task(scrape(worker.http_port)) if scraped else None
            await receive(outputs, WARM_UP)
            started, used = time.perf_counter(), time.process_time()
            await receive(outputs, records)
            seconds = time.perf_counter() - started, time.process_time() - used
            if scraper is not None:
                scraper.cancel()
                await asyncio.gather(scraper, return_exceptions=True)
    return seconds


async def produce(settings: Settings, records: int) -> None:
    async with running_client(AIOKafkaProducer(**settings.client(), linger_ms=5)) as producer:
        for i in range(records):
            value = json.dumps({"id": f"r{i}", "text": "zoloft gave me a headache"}).encode()
            await producer.send(broker_name(settings, POSTS.name), key=b"r%d" % i, value=value)
        await producer.flush()


async def receive(consumer: Any, n: int) -> None:
    """Waits for the next `n` outputs."""
    while n > 0:
        for batch in (await consumer.getmany(timeout_ms=1000, max_records=n)).values():
            n -= len(batch)


async def scrape(port: int) -> None:
    """Reads /metrics once a second until cancelled, as another process would."""

    def read() -> None:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
            answer.read()

    while True:
        await asyncio.to_thread(read)
        await asyncio.sleep(SCRAPE_SECONDS)


def measure(records: int, pairs: int) -> list[dict[str, tuple[float, float]]]:
    """For each pair the seconds with and without metrics."""
    found = []
    for i in range(pairs):
        pair: dict[str, tuple[float, float]] = {}
        for mode in ("on", "off") if i % 2 else ("off", "on"):
            if mode == "on":
                pair[mode] = asyncio.run(one_run(records, scraped=True))
            else:
                with without_metrics():
                    pair[mode] = asyncio.run(one_run(records, scraped=False))
        found.append(pair)
    return found


def figures(found: Sequence[dict[str, tuple[float, float]]], records: int) -> dict[str, Any]:
    """The cost as a share of the time without metrics, by the median of the pairs."""
    wall, cpu = ([pair["on"][i] / pair["off"][i] - 1 for pair in found] for i in (0, 1))
    return {
        "records_per_run": records,
        "pairs": len(found),
        "cost_of_wall_time": round(statistics.median(wall), 4),
        "cost_of_wall_time_lowest": round(min(wall), 4),
        "cost_of_wall_time_highest": round(max(wall), 4),
        "cost_of_processor_time": round(statistics.median(cpu), 4),
        "records_per_second_with": round(records / statistics.median(p["on"][0] for p in found), 1),
        "records_per_second_without": round(records / statistics.median(p["off"][0] for p in found), 1),
    }


def main(
    records: Annotated[int, typer.Option(min=100, help="records of each run")] = 20_000,
    pairs: Annotated[int, typer.Option(min=1, help="pairs of runs")] = 7,
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    found = measure(records, pairs)
    print_and_write({**figures(found, records), **provenance("metrics_cost")}, result)


if __name__ == "__main__":
    typer.run(main)
