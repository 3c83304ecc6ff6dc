"""Waiting in a test for what another task does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any


async def until(condition: Callable[[], bool], seconds: float = 180.0) -> None:
    """Polls the condition until it is true; raises TimeoutError after `seconds`."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110  the other task sets no event
            await asyncio.sleep(0.01)


def pause_fetches(consumer: Any) -> threading.Event:
    """From now on each fetch of an aiokafka consumer pauses, as after an error; set when one does."""
    pauses = threading.Event()

    async def paused(*_: Any) -> bool:
        pauses.set()
        await asyncio.sleep(600)
        return False

    consumer._fetcher._proc_fetch_request = paused
    return pauses
