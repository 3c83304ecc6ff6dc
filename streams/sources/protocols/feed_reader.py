"""The process that reads feeds, from the side of the sources: started once, and anew after a hostile feed."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import orjson

from streams.sources.protocols.feed_child import READY, SIZE
from streams.sources.source import Interrupted

log = logging.getLogger(__name__)
#: A larger feed is not read, nor is an answer about one.
MAX_FEED, MAX_ANSWER = 2 << 20, 16 << 20
#: Seconds for a feed. The system ends the process after 10 s of the processor, which come later on a busy
#: machine; this ends it where the system has no such limit.
SECONDS, START_SECONDS = 40.0, 60.0


class FeedReader:
    """One process for all feeds, which is there while a source is in the context; the last one ends it."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._users = 0
        self._turn = asyncio.Lock()
        self._process: Process | None = None

    @property
    def pid(self) -> int | None:
        """The process's id; None while there is no process."""
        return self._process.pid if self._process else None

    async def __aenter__(self) -> Self:
        self._users += 1
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._users -= 1
        if not self._users:
            await self._end()

    async def read(self, body: bytes, charset: str | None = None, address: str = "") -> dict[str, Any]:
        """The feed, as `feed_child.read_feed` gives it. Raises Interrupted for what is no feed, and for a
        hostile one: it takes too much time or memory.
        """
        async with self._turn:
            process = await self._started()
            try:
                async with asyncio.timeout(self._seconds):
                    answer = await _ask(process, orjson.dumps({"charset": charset, "address": address}), body)
            except (TimeoutError, OSError, asyncio.IncompleteReadError):
                await self._end()
                raise Interrupted("hostile", "a feed that takes too much time or memory to read") from None
            except BaseException:  # an answer that comes later must not become that of another feed
                await self._end()
                raise
        feed: dict[str, Any] = orjson.loads(answer)
        if "error" in feed:
            raise Interrupted("http", feed["error"])
        return feed

    async def _started(self) -> Process:
        if self._process is not None and self._process.returncode is None:
            return self._process
        # No setting goes to it, so no secret either; nor the signals of a terminal, which are for its parent.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PV_")}
        process = self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "streams.sources.protocols.feed_child",
            stdin=PIPE, stdout=PIPE, stderr=DEVNULL, start_new_session=True,
            env=environment | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )  # fmt: skip
        try:
            assert process.stdout is not None
            async with asyncio.timeout(START_SECONDS):
                await process.stdout.readexactly(len(READY))
        except (TimeoutError, asyncio.IncompleteReadError):
            await self._end()
            log.warning("the process that reads feeds does not start")
            raise Interrupted("closed", "the process that reads feeds does not start") from None
        except BaseException:
            await self._end()
            raise
        return process

    async def _end(self) -> None:
        """Kills the process: it keeps nothing."""
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def _ask(process: Process, *parts: bytes) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"".join(SIZE.pack(len(part)) + part for part in parts))
    await process.stdin.drain()
    size = SIZE.unpack(await process.stdout.readexactly(SIZE.size))[0]
    if size > MAX_ANSWER:
        raise OSError("too large")
    return await process.stdout.readexactly(size)
