from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiokafka.errors import KafkaConnectionError, KafkaTimeoutError, TopicAuthorizationFailedError

from streams import metrics
from streams.broker import watch as watch_module
from streams.broker.embedded import EmbeddedBroker
from streams.broker.watch import BrokerWatch
from streams.settings import Settings
from streams.topics import TopicsError
from tests.integration import processes
from tests.streams.polling import until


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
        async with asyncio.timeout(10):
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

    async with asyncio.timeout(30):
        assert await watch.until_answered(ask) == 7
    said = [r.message.split(" at 127")[0] for r in caplog.records if r.name == "streams.broker.watch"]
    assert (said, watch.up) == (["the broker"] * 2, True)


@pytest.mark.parametrize("error", [TopicAuthorizationFailedError(), TopicsError("none"), ZeroDivisionError()])
async def test_an_error_that_no_waiting_changes_is_not_waited_for(error: Exception) -> None:
    watch = BrokerWatch(Settings(broker=f"kafka://127.0.0.1:{processes.free_port()}"))

    async def ask() -> None:
        raise error

    with pytest.raises(type(error)):
        await asyncio.wait_for(watch.until_answered(ask), 30)
    assert watch.up
