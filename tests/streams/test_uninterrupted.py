"""What is cancelled while its clients start or stop is cancelled, and leaves no connection open."""

from __future__ import annotations

import asyncio
import gc
import warnings
from typing import Any

import pytest
from aiokafka.conn import AIOKafkaConnection

from streams.broker.consumer import kafka_consumer, running_client
from streams.broker.embedded import EmbeddedBroker
from streams.settings import Settings
from streams.topics import admin_client

#: Requests and closed connections of one consumer and one admin client, and some more.
STEPS = 24


class Steps:
    """Cancels a task at the request or closed connection of that number."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.left = 0
        self.task: asyncio.Task[None] | None = None
        for name in ("send", "close"):
            patch.setattr(AIOKafkaConnection, name, self._counted(getattr(AIOKafkaConnection, name)))

    def _counted(self, method: Any) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            self.left -= 1
            if self.left == 0 and self.task is not None:
                asyncio.get_running_loop().call_soon(self.task.cancel)
            return method(*args, **options)

        return call


async def _starts_and_stops(settings: Settings) -> None:
    async with running_client(kafka_consumer(settings, group_id=None)):
        async with admin_client(settings):
            pass
        # Where fewer requests were made.
        if task := asyncio.current_task():
            asyncio.get_running_loop().call_later(0.1, task.cancel)
        await asyncio.Event().wait()


async def test_a_task_cancelled_at_any_request_or_close_ends_and_leaves_no_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps = Steps(monkeypatch)
    with EmbeddedBroker() as broker, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        settings = Settings(broker=f"kafka://{broker.bootstrap}", security="PLAINTEXT")
        for steps.left in range(1, STEPS):
            at, steps.task = steps.left, asyncio.create_task(_starts_and_stops(settings))
            await asyncio.wait([steps.task], timeout=20)
            assert steps.task.cancelled(), f"cancelled at step {at}, the task goes on"
        gc.collect()
    assert not [str(w.message) for w in caught if "AIOKafkaConnection" in str(w.message)]
