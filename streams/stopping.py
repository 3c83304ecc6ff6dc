"""Ends work at SIGTERM and SIGINT also while a process still waits for something."""

from __future__ import annotations

import asyncio
import atexit
import gc
import os
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")
#: Seconds for an orderly end of a process that works in its main thread.
END_SECONDS = 0.5
#: When the collector looks for cycles: as Python does, and while a process imports and loads, when hardly any
#: object ends and each look visits all of them. Looking rarely saves a fifth of the time to the first result.
_USUALLY, _RARELY = gc.get_threshold(), (100_000, 20, 50)
_asked = threading.Event()


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


def at_signals(call: Callable[[], object]) -> None:
    """Has SIGTERM and SIGINT call a function of the running loop, in place of any before it."""
    for stop_signal in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(stop_signal, call)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGINT cancel the block, which then ends without an error. What runs in it may replace the
    handlers.
    """
    body, stop = asyncio.current_task(), asyncio.Event()
    assert body is not None

    def end() -> None:
        # Once: a second cancellation would interrupt the end.
        if not stop.is_set():
            body.cancel()
        stop.set()

    at_signals(end)
    try:
        yield
    except asyncio.CancelledError:
        if not stop.is_set():
            raise
        body.uncancel()


def end_at_sigterm() -> None:
    """SIGTERM ends the process with code 0, also the first one of a container, which does not get it without
    a handler. For work in the main thread that may be interrupted anywhere.
    """

    def end(*_: object) -> None:
        _asked.set()
        # DuckDB makes an error of its own of the exit, and a client of Kafka may wait for its broker.
        timer = threading.Timer(END_SECONDS, os._exit, (0,))
        timer.daemon = True
        timer.start()
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, end)


def is_ending() -> bool:
    """Whether SIGTERM has come to a process of `end_at_sigterm`: an error is of the interruption then."""
    return _asked.is_set()


def collect_rarely() -> None:
    """Lets Python look for cycles rarely, until `freeze`."""
    gc.set_threshold(*_RARELY)


def freeze() -> None:
    """To be called once everything is imported and loaded: otherwise each full collection, and every model
    swap runs one, visits half a million objects and stops the process for 0.2 s.

    At the end of the process they are collected again: libraries that look for what is left (nanobind, with
    which duckdb is made) would else print it as leaked.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_USUALLY)
    atexit.register(gc.unfreeze)
