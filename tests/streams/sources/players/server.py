"""A server on the loopback interface with a clock that lets things happen, and streams of messages with
faults.
"""

from __future__ import annotations

import asyncio
import random
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

from aiohttp import web

from tests.streams.sources.players.faults import LARGE, Fault, Faults
from tests.streams.sources.players.world import Happening, World

Send = Callable[[bytes], Awaitable[None]]
LARGE_NUMBER = 10**9
#: Happenings that wait to be sent: the world goes on during an interruption, but not without an end.
MAX_AHEAD = 25


class Player:
    """A server for a world; an async context manager. The world begins with the first connection."""

    def __init__(self, world: World, rate: float = 2000.0) -> None:
        self.world = world
        self.connections = 0
        self.furthest = 0
        """How many happenings were sent, or should have been."""
        self.refuse: list[tuple[int, dict[str, str]]] = []
        """Statuses and headers of the next answers."""
        self.app = web.Application()
        self.url = ""
        self._rate = rate
        self._begun = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._runner = web.AppRunner(self.app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        self._clock = asyncio.create_task(self._publish())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._clock.cancel()
        await asyncio.gather(self._clock, return_exceptions=True)
        await self._runner.cleanup()

    async def _publish(self) -> None:
        await self._begun.wait()
        while not self.world.is_over:
            ahead = self.world.published - self.furthest
            self.world.publish(min(max(1, round(self._rate / 100)), MAX_AHEAD - ahead))
            await asyncio.sleep(0.01)

    @property
    def is_over(self) -> bool:
        """Whether everything has happened."""
        return self.world.is_over

    def begin(self) -> None:
        self.connections += 1
        self._begun.set()

    def refusal(self) -> web.Response | None:
        if not self.refuse:
            return None
        status, headers = self.refuse.pop(0)
        return web.Response(status=status, headers=headers)


class StreamPlayer(Player, ABC):
    """Sends a message for each happening over a connection that stays open."""

    def __init__(self, world: World, faults: Faults | None = None, rate: float = 2000.0) -> None:
        super().__init__(world, rate)
        self.faults = faults or Faults(seed=0)
        self.keeps_alive = False
        """Once the world is over, the connection is kept alive, so that the source does not connect again."""

    @abstractmethod
    def message(self, happening: Happening) -> bytes:
        """What the server sends for a happening."""

    @abstractmethod
    def malformed(self) -> bytes:
        """A message that is none."""

    @abstractmethod
    def clock_jump(self, at: float) -> bytes:
        """A message that has a wrong time, and no post that counts."""

    @abstractmethod
    def keep_alive(self) -> bytes:
        """What the server sends when there is nothing else."""

    def half(self, message: bytes) -> bytes:
        """The first part of a message, as it goes over the wire."""
        return message[: len(message) // 2]

    async def play(self, request: web.Request, place: int, send: Send) -> None:
        """Sends the happenings from `place` on until the connection ends, with faults where it is for the
        first time.
        """
        while request.transport is not None and not request.transport.is_closing():
            if place >= self.world.published:
                await asyncio.sleep(0.002)
                if self.keeps_alive and self.world.is_over:
                    await send(self.keep_alive())
                    await asyncio.sleep(0.1)
                continue
            happening, place = self.world.happenings[place], place + 1
            is_new, self.furthest = place > self.furthest, max(place, self.furthest)
            match self.faults.draw() if is_new else None:
                case "cut" | "429" | "503" | "mid_line" as end:
                    await self._end(request, end, self.message(happening))
                    return
                case "out_of_order" if self._may_swap(place):
                    await send(self.message(self.world.happenings[place]))
                    place += 1
                case "duplicate":
                    await send(self.message(happening))
                case fault:
                    await self._disturb(fault, happening, send)
            await send(self.message(happening))

    def _may_swap(self, place: int) -> bool:
        """Versions of one post stay in their order: nothing says which is the later one."""
        happenings = self.world.happenings
        return place < self.world.published and happenings[place].number != happenings[place - 1].number

    async def _disturb(self, fault: Fault | None, happening: Happening, send: Send) -> None:
        match fault:
            case "silence":
                await asyncio.sleep(self.faults.silence)
            case "malformed":
                await send(self.malformed())
            case "clock":
                await send(
                    self.clock_jump(happening.at + random.Random(happening.number).choice((-7200, 7200)))
                )
            case "large":
                large = Happening(kind="create", number=LARGE_NUMBER, text="x" * LARGE, at=happening.at)
                await send(self.message(large))

    async def _end(self, request: web.Request, fault: Fault, message: bytes) -> None:
        transport = request.transport
        assert isinstance(transport, asyncio.Transport)
        if fault in ("429", "503"):
            self.refuse.append((int(fault), {}))
        elif fault == "mid_line":
            transport.write(self.half(message))
            await asyncio.sleep(0.01)
        transport.abort()
