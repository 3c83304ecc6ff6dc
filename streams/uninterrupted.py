"""Starts and stops of aiokafka clients that a cancellation does not break off."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")
#: Seconds for which a cancelled start or stop may go on.
FINISH_SECONDS = 2.0


async def uninterrupted(work: Coroutine[Any, Any, T]) -> T:
    """The result of a start or a stop, in a task of its own; what cancels the caller reaches it only after
    FINISH_SECONDS. aiokafka's start leaves its first connection open when cancelled, and its stops take the
    caller's cancellation for that of the task they wait for: the caller would go on.
    """
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task], timeout=FINISH_SECONDS)
        task.cancel()
        await asyncio.wait([task], timeout=FINISH_SECONDS)
        with suppress(Exception, asyncio.CancelledError):
            task.result()
        raise
