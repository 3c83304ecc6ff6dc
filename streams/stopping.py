"""Ends work at SIGTERM and SIGINT also while a process still waits for something."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")


async def before_stop(stop: asyncio.Event, work: Coroutine[Any, Any, T]) -> T | None:
    """What `work` gives; None where `stop` is set first, which cancels it."""
    task, stopped = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((task, stopped), return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        for one in (task, stopped):
            one.cancel()
        await asyncio.gather(task, stopped, return_exceptions=True)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGINT cancel the block, which then ends without an error. What runs in it may replace the
    handlers.
    """
    loop, body = asyncio.get_running_loop(), asyncio.current_task()
    assert body is not None
    stop = asyncio.Event()

    def end() -> None:
        # Once: a second cancellation would interrupt the end.
        if not stop.is_set():
            body.cancel()
        stop.set()

    for stop_signal in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(stop_signal, end)
    try:
        yield
    except asyncio.CancelledError:
        if not stop.is_set():
            raise
        body.uncancel()
