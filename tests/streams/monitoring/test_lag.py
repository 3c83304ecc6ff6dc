"""Lag and dead letters of a stage that has fetched nothing, and addresses for `pvstream status`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from aiokafka import TopicPartition
from confluent_kafka import Producer

from streams import metrics
from streams.broker.consumer import kafka_consumer
from streams.broker.embedded import EmbeddedBroker
from streams.dead_letters.redrive import REASONS, redrive_group
from streams.monitoring import lag as lag_module
from streams.monitoring import workers
from streams.monitoring.lag import LagWatch
from streams.monitoring.progress import Progress
from streams.settings import Settings
from tests.streams.polling import until

DEAD = "posts.dead"
PARTITIONS = [TopicPartition("posts", p) for p in range(4)]


class StandingStage:
    """A stage that has acknowledged something, and does nothing more."""

    dead_letters = (DEAD,)

    def __init__(self) -> None:
        self.progress = Progress("standing")
        self.offsets = dict.fromkeys(PARTITIONS, 0)
        self.read_all: set[TopicPartition] = set()

    def acknowledged(self) -> dict[TopicPartition, int]:
        return self.offsets

    def has_read_all(self, partition: TopicPartition, end: int) -> bool:
        return partition in self.read_all


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    for name in ("CHECK_SECONDS", "BACKLOG_SECONDS"):
        monkeypatch.setattr(lag_module, name, 0.05)
    with EmbeddedBroker() as broker:
        yield Settings(broker=f"kafka://{broker.bootstrap}")


def produce(settings: Settings, topic: str, *records: tuple[int, float]) -> None:
    """Sends records to partitions with timestamps in seconds."""
    producer = Producer({"bootstrap.servers": settings.bootstrap[0]})
    for partition, seconds in records:
        producer.produce(topic, b"value", partition=partition, timestamp=int(seconds * 1000))
    assert producer.flush(30) == 0


@asynccontextmanager
async def watching(settings: Settings, stage: StandingStage) -> AsyncIterator[LagWatch]:
    watch = LagWatch(settings, [stage])
    task = asyncio.create_task(watch.run())
    try:
        yield watch
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def sample(name: str, partition: int) -> float | None:
    labels = {"stage": "standing", "topic": "posts", "partition": str(partition)}
    return metrics.REGISTRY.get_sample_value(name, labels)


async def test_the_lag_of_a_stage_that_fetches_nothing_is_that_of_the_broker(settings: Settings) -> None:
    stage, now = StandingStage(), time.time()
    produce(settings, "posts", (0, now - 100), (0, now - 50), (0, now))
    produce(settings, "posts", (1, now + 1000), (2, -7e10))
    async with watching(settings, stage) as watch:

        def observed(partition: int, records: float, seconds: float) -> bool:
            watch.observe()
            found = sample("pv_lag_seconds", partition)
            return sample("pv_lag_records", partition) == records and abs((found or 0) - seconds) < 20

        await until(lambda: observed(0, 3, 100))
        await until(lambda: all(observed(p, 1, 0) for p in (1, 2)) and observed(3, 0, 0))
        assert stage.progress.seconds_since_progress() > 0
        stage.offsets = stage.offsets | {PARTITIONS[0]: 1}
        await until(lambda: observed(0, 2, 50))
        # Behind the last record are markers of a transaction.
        stage.read_all = set(PARTITIONS)
        assert observed(0, 0, 0)
        assert stage.progress.seconds_since_progress() == 0


class MovingStage(StandingStage):
    """A stage that acknowledges a record whenever somebody looks."""

    def acknowledged(self) -> dict[TopicPartition, int]:
        self.offsets = {PARTITIONS[0]: self.offsets[PARTITIONS[0]] + 1}
        return self.offsets


async def test_a_stage_that_works_off_old_records_has_their_age_as_its_lag(settings: Settings) -> None:
    stage = MovingStage()
    produce(settings, "posts", *[(0, time.time() - 3600)] * 5000)
    async with watching(settings, stage) as watch:

        def is_old() -> bool:
            watch.observe()
            return (sample("pv_lag_seconds", 0) or 0) > 3500

        await until(is_old)
    assert stage.progress.seconds_since_progress() < 5
    assert (sample("pv_lag_records", 0) or 0) > 0


async def test_dead_letters_wait_until_they_are_redriven_for_every_reason(settings: Settings) -> None:
    produce(settings, DEAD, *[(0, time.time())] * 5)

    async def redriven(reason: str, offset: int) -> None:
        consumer = kafka_consumer(
            settings, group_id=redrive_group(settings, reason), enable_auto_commit=False
        )
        await consumer.start()
        consumer.assign([TopicPartition(DEAD, 0)])
        await consumer.commit({TopicPartition(DEAD, 0): offset})
        await consumer.stop()

    def waiting() -> float | None:
        return metrics.REGISTRY.get_sample_value("pv_dead_letters_waiting", {"topic": DEAD})

    async with watching(settings, StandingStage()):
        await until(lambda: waiting() == 5)
        for reason in REASONS[1:]:
            await redriven(reason, 3)
        await asyncio.sleep(0.3)
        assert waiting() == 5
        await redriven(REASONS[0], 4)
        await until(lambda: waiting() == 2)


async def _broken(_: web.Request) -> web.Response:
    return web.Response(text="no JSON")


async def _endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b" " * (1 << 16))


async def test_an_answer_without_an_end_is_not_read_to_its_end() -> None:
    app = web.Application()
    app.add_routes([web.get("/a/health/live", _endless), web.get("/b/health/live", _broken)])
    async with TestServer(app) as server:
        endless, broken = await workers.ask_workers([str(server.make_url(path)) for path in ("/a", "/b")])
    assert "an answer of more than" in endless.error
    assert broken.error
