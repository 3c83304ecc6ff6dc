from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from streams import metrics
from streams.broker import watch as watch_module
from streams.broker.embedded import EmbeddedBroker
from streams.broker.watch import BrokerWatch
from streams.settings import Settings
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
            watch._update(False)
            await until(lambda: watch.up)
    assert "answers again" in caplog.text
    assert metrics.REGISTRY.get_sample_value("pv_broker_up") == 1
