"""Reads what may never come, such as the next line of a pipe."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, BinaryIO, TypeVar

T = TypeVar("T")


def standard_input() -> BinaryIO:
    """Standard input for a `PipeThread`, not `sys.stdin`: to close that would wait for a read."""
    return open(0, "rb", closefd=False)


class PipeThread:
    """Makes calls one after the other in a thread that does not keep the process from its end, as those of
    asyncio do: there a worker that is stopped would wait until the pipe has another line.
    """

    def __init__(self) -> None:
        self._calls: SimpleQueue[tuple[Callable[[], Any], asyncio.Future[Any]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="pipe", daemon=True)

    def __enter__(self) -> PipeThread:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Does not wait for a running call."""
        self._calls.put(None)

    async def call(self, work: Callable[[], T]) -> T:
        """What `work` returns or raises."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._calls.put((work, future))
        return await future

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            work, future = call
            result, failure = None, None
            try:
                result = work()
            except Exception as error:
                failure = error
            with suppress(RuntimeError):  # the loop is closed
                future.get_loop().call_soon_threadsafe(_settle, future, result, failure)


def _settle(future: asyncio.Future[Any], result: Any, failure: Exception | None) -> None:
    if future.done():  # cancelled
        return
    if failure is not None:
        future.set_exception(failure)
    else:
        future.set_result(result)
