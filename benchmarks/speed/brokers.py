"""The whole pipeline on a broker: how many records a second, and how long after its arrival a record is done.

One process runs the worker with all five stages and the clients that write its input and read its final
records; the broker, where it is a real one, shares the machine with it.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from itertools import zip_longest
from typing import Any

import orjson
from aiokafka import AIOKafkaProducer

from benchmarks.speed.setup import Setup
from benchmarks.speed.timing import Timed, median
from streams.agents.pipeline import FINAL_TOPICS, STAGES
from streams.broker.consumer import kafka_consumer, running_client
from streams.broker.embedded import EmbeddedBroker
from streams.rollout.handle import Handle
from streams.settings import Settings
from streams.topics import EVENTS, SUMMARIES, broker_name
from streams.worker import Worker

READY_SECONDS, RUN_SECONDS = 60.0, 300.0
SHARES = (0.5, 0.8)
Line = tuple[str, bytes]
"""An input topic and a record of it."""


class Pipeline:
    """A worker with all stages, and the clients that send and receive. `done`: the time at which each record
    came out.
    """

    def __init__(self, settings: Settings, producer: Any) -> None:
        self.done: dict[str, float] = {}
        self._settings = settings
        self._producer = producer
        self._arrived = asyncio.Event()
        self._run, self._sent = f"{time.time_ns():x}-", 0
        self._awaited: Counter[str] = Counter()
        """Final records of each id that have not come out."""

    async def send(self, line: Line) -> str:
        """Sends a record under a new id; returns the id."""
        topic, value = line
        self._sent += 1
        id_ = f"{self._run}{self._sent}"
        self._awaited[id_] = len(FINAL_TOPICS[topic])
        record = orjson.dumps(orjson.loads(value) | {"id": id_})
        await self._producer.send(broker_name(self._settings, topic), key=id_.encode(), value=record)
        return id_

    async def wait(self, most: int = 0) -> None:
        """Waits until all but `most` of the records that were sent have come out."""
        while len(self.done) < self._sent - most:
            self._arrived.clear()
            await self._arrived.wait()

    async def read(self) -> None:
        consumer = kafka_consumer(
            self._settings, EVENTS.name, SUMMARIES.name,
            group_id=None, auto_offset_reset="earliest", fetch_max_wait_ms=50,
        )  # fmt: skip
        async with running_client(consumer):
            async for message in consumer:
                if (key := (message.key or b"").decode()).startswith(self._run):
                    self._awaited[key] -= 1
                    if self._awaited[key] <= 0:
                        self.done[key] = time.time()
                        self._arrived.set()


@asynccontextmanager
async def running(setup: Setup, bootstrap: str) -> AsyncIterator[Pipeline]:
    """A pipeline that is ready, and has processed a first batch of each topic."""
    settings = Settings(broker=f"kafka://{bootstrap}", http_port=0)
    worker = Worker(STAGES, settings, alone=True)
    worker.handles = {task: Handle(loaded) for task, loaded in setup.models.items()}
    async with worker.running(), clients(settings) as pipeline:
        async with asyncio.timeout(READY_SECONDS):
            while not all(worker.readiness().values()):  # noqa: ASYNC110
                await asyncio.sleep(0.1)
            for line in lines(setup.lines)[:24]:
                await pipeline.send(line)
            await pipeline.wait()
        yield pipeline


@asynccontextmanager
async def clients(settings: Settings) -> AsyncIterator[Pipeline]:
    """The clients of workers that run already."""
    producer = AIOKafkaProducer(**settings.client(), linger_ms=5, acks="all")
    async with running_client(producer):
        pipeline = Pipeline(settings, producer)
        reading = asyncio.create_task(pipeline.read())
        try:
            yield pipeline
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


def lines(inputs: dict[str, list[bytes]]) -> list[Line]:
    """All records, one of each topic in turn."""
    columns = [[(topic, line) for line in own] for topic, own in inputs.items()]
    return [line for row in zip_longest(*columns) for line in row if line is not None]


def throughput(setup: Setup, kafka: str | None) -> dict[str, Any]:
    """All records at once through the pipeline: on the embedded broker, and on Kafka where there is one."""
    rows = {}
    for name in ("embedded broker", *(["Apache Kafka"] if kafka else [])):
        with EmbeddedBroker() if name == "embedded broker" else nullcontext() as broker:
            bootstrap = broker.bootstrap if broker else str(kafka)
            runs = asyncio.run(_runs(setup, bootstrap))
        wall, cpu = median(runs)
        rows[name] = {
            "records_per_second": round(setup.records / wall, 1),
            "cpu_ms_a_record": round(1000 * cpu / setup.records, 2),
        }
    return {
        "what": "posts, sentences and questions to the final topics",
        "records": setup.records,
        "rows": rows,
    }


async def _runs(setup: Setup, bootstrap: str) -> list[Timed]:
    runs = []
    async with asyncio.timeout(RUN_SECONDS), running(setup, bootstrap) as pipeline:
        for _ in range(setup.amount.repeats):
            setup.forget()
            runs.append(await _run(pipeline, lines(setup.lines)))
    return runs


async def _run(pipeline: Pipeline, records: Sequence[Line]) -> Timed:
    wall, cpu = time.perf_counter(), time.process_time()
    for line in records:
        await pipeline.send(line)
    await pipeline.wait()
    return Timed(time.perf_counter() - wall, time.process_time() - cpu)


def latency(setup: Setup, kafka: str) -> dict[str, Any]:
    """Seconds from sending a record to its final record, at shares of the rate of `throughput`, on Kafka.
    Records are sent at random times (exponential gaps), however many are still in work.
    """
    return asyncio.run(_latency(setup, kafka))


async def _latency(setup: Setup, kafka: str) -> dict[str, Any]:
    rows: dict[str, Any] = {}
    async with asyncio.timeout(RUN_SECONDS), running(setup, kafka) as pipeline:
        # The median of several runs that are as long as the load.
        runs = []
        for _ in range(setup.amount.repeats):
            setup.forget()
            runs.append(await _run(pipeline, lines(setup.lines)))
        capacity = setup.records / statistics.median(run.wall for run in runs)
        for share in SHARES:
            taken = await _loaded(pipeline, lines(setup.lines), share * capacity, setup.amount.seconds)
            rows[f"{share:.0%} of capacity"] = {
                "records_per_second": round(share * capacity, 1),
                "records": len(taken),
                "p50_seconds": round(statistics.median(taken), 3),
                "p99_seconds": round(statistics.quantiles(taken, n=100, method="inclusive")[98], 3),
                "most_seconds": round(max(taken), 3),
            }
    return {"capacity_records_per_second": round(capacity, 1), "rows": rows}


async def _loaded(pipeline: Pipeline, records: Sequence[Line], rate: float, seconds: float) -> list[float]:
    """The latency of each record that is sent in that time."""
    rng = random.Random(7)
    sent: dict[str, float] = {}
    due = started = time.time()
    while (due := due + rng.expovariate(rate)) < started + seconds:
        await asyncio.sleep(max(0.0, due - time.time()))
        # From the time at which it was due: a late loop must not make the latency look lower.
        sent[await pipeline.send(rng.choice(records))] = due
    await pipeline.wait()
    return [pipeline.done[id_] - moment for id_, moment in sent.items()]
