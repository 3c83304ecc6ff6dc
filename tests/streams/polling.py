"""Waiting in a test for what another task does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


async def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Polls the condition until it is true; raises TimeoutError after `seconds`."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110  the other task sets no event
            await asyncio.sleep(0.01)
