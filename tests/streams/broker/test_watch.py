"""A broker that is away, and clients that do not start or are cancelled while they do."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaConnectionError, KafkaTimeoutError, TopicAuthorizationFailedError
from rich.console import Console

from streams import metrics, topics
from streams.broker import watch as watch_module
from streams.broker.consumer import kafka_consumer
from streams.broker.deletions import read_deletions
from streams.broker.embedded import EmbeddedBroker
from streams.broker.ranges import read_chunks
from streams.broker.watch import BrokerWatch
from streams.cli.feed import arrivals
from streams.cli.ingest import Sender
from streams.cli.topic_output import run_tail
from streams.intake.forget import _send
from streams.reviews.tail import Tail
from streams.settings import Settings
from streams.signals.publishing import publish
from streams.sources.delivery import Delivery
from streams.store.follow import Follower
from streams.store.open_database import open_database
from streams.topics import TopicsError
from tests.integration import processes
from tests.streams.polling import pause_fetches, until


@pytest.fixture(autouse=True)
def short_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "CHECK_SECONDS", 0.05)


@asynccontextmanager
async def watching(address: str) -> AsyncIterator[BrokerWatch]:
    watch = BrokerWatch(Settings(broker=f"kafka://{address}"))
    task = asyncio.create_task(watch.run())
    try:
        yield watch
    finally:
        task.cancel()
        async with asyncio.timeout(120):
            await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()


async def test_an_unavailable_broker_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger="streams")
    async with watching(f"127.0.0.1:{processes.free_port()}") as watch:
        await until(lambda: not watch.up)
        await asyncio.sleep(0.5)
    messages = [r.message for r in caplog.records if r.name == "streams.broker.watch"]
    assert len(messages) == 1
    assert "does not answer" in messages[0]
    assert metrics.REGISTRY.get_sample_value("pv_broker_up") == 0


async def test_a_broker_that_answers_is_up_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger="streams")
    with EmbeddedBroker() as embedded:
        async with watching(embedded.bootstrap) as watch:
            watch.update(False)
            await until(lambda: watch.up)
    assert "answers again" in caplog.text
    assert metrics.REGISTRY.get_sample_value("pv_broker_up") == 1


async def test_a_broker_that_is_away_is_asked_until_it_answers_and_said_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_module, "PAUSE", 0.01)
    caplog.set_level(logging.WARNING, logger="streams")
    errors = [KafkaConnectionError(), KafkaTimeoutError(), TimeoutError(), ConnectionResetError()]
    watch = BrokerWatch(Settings(broker=f"kafka://127.0.0.1:{processes.free_port()}"))

    async def ask() -> int:
        assert watch.up == (len(errors) == 4)
        if errors:
            raise errors.pop()
        return 7

    async with asyncio.timeout(120):
        assert await watch.until_answered(ask) == 7
    said = [r.message.split(" at 127")[0] for r in caplog.records if r.name == "streams.broker.watch"]
    assert (said, watch.up) == (["the broker"] * 2, True)


@pytest.mark.parametrize("error", [TopicAuthorizationFailedError(), TopicsError("none"), ZeroDivisionError()])
async def test_an_error_that_no_waiting_changes_is_not_waited_for(error: Exception) -> None:
    watch = BrokerWatch(Settings(broker=f"kafka://127.0.0.1:{processes.free_port()}"))

    async def ask() -> None:
        raise error

    with pytest.raises(type(error)):
        await asyncio.wait_for(watch.until_answered(ask), 120)
    assert watch.up


async def _follow(settings: Settings) -> None:
    database = open_database(settings, write=True)
    try:
        await Follower(settings, database).run(asyncio.Event())
    finally:
        database.close()


async def _first(settings: Settings) -> None:
    async for _ in arrivals(settings):
        return


async def _chunk(settings: Settings) -> None:
    async for _ in read_chunks(settings, topics.POSTS, "beginning", "end", lambda done, total: None):
        return


async def _entered(context: Any) -> None:
    async with context:
        pass


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    with EmbeddedBroker() as embedded:
        asyncio.run(topics.create(Settings(broker=f"kafka://{embedded.bootstrap}")))
        yield f"kafka://{embedded.bootstrap}"


USES: dict[str, Callable[[Settings], Awaitable[Any]]] = {
    "store": _follow,
    "arrivals": _first,
    "range": _chunk,
    "deletions": lambda settings: read_deletions(settings, topics.POSTS, []),
    "tail": lambda settings: run_tail(
        Console(file=StringIO()), topics.EVENTS, settings, beginning=True, count=1, json=True
    ),
    "signals": lambda settings: publish(settings, [], {"a"}),
    "reviews": lambda settings: Tail(settings, topics.REVIEWS).start(),
    "sender": lambda settings: _entered(Sender(settings)),
    "forget": lambda settings: _send(settings, [b"a"], [topics.POSTS]),
    "delivery": lambda settings: _entered(Delivery(settings)),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("cancelled", [False, True])
async def test_a_client_that_does_not_start_is_stopped(
    broker: str, use: str, cancelled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that is not stopped reports itself as "Unclosed" when it is collected."""
    clients: list[Any] = []
    starting = asyncio.Event()

    async def start(client: Any) -> None:
        clients.append(client)
        starting.set()
        if cancelled:
            await asyncio.sleep(60)
        raise KafkaConnectionError("no broker")

    for kind in (AIOKafkaConsumer, AIOKafkaProducer):
        monkeypatch.setattr(kind, "start", start)
    settings = Settings(broker=broker, database=str(tmp_path / "x.duckdb"), state=tmp_path)
    running = asyncio.ensure_future(USES[use](settings))
    await asyncio.wait_for(starting.wait(), 120)
    if cancelled:
        running.cancel()
    outcome: object
    (outcome,) = await asyncio.gather(running, return_exceptions=True)
    # Ctrl-C ends a tail without an error.
    expected = type(None) if use == "tail" else asyncio.CancelledError
    assert isinstance(outcome, expected if cancelled else KafkaConnectionError)
    assert clients
    assert all(client._closed for client in clients)


async def test_a_consumer_stops_whose_fetch_pauses_after_an_error(broker: str) -> None:
    """As it does while the broker is away. aiokafka cancels it then, and raises its cancellation."""
    consumer = kafka_consumer(Settings(broker=broker), "events", group_id=None, enable_auto_commit=False)
    await consumer.start()
    pauses = pause_fetches(consumer)
    await until(pauses.is_set)
    await consumer.stop()
    assert not any(conn.connected() for conn in consumer._client._conns.values())


async def test_a_consumer_stops_that_was_just_assigned_its_partitions_anew(broker: str) -> None:
    """While a request of the earlier assignment waits for records."""
    consumer = kafka_consumer(Settings(broker=broker), group_id=None, enable_auto_commit=False)
    await consumer.start()
    partitions = [TopicPartition("events", p) for p in range(2)]
    consumer.assign(partitions)
    for tp in partitions:
        consumer.seek(tp, 0)
    await until(lambda: bool(consumer._fetcher._in_flight))
    consumer.assign(partitions)
    stopping = asyncio.ensure_future(consumer.stop())
    done, _ = await asyncio.wait([stopping], timeout=20)
    if not done:
        stopping.cancel()  # which ends it
        await asyncio.wait([stopping])
    assert done
