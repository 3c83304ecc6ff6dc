"""A process that runs sources: it resumes them, serves metrics and readiness, and drains on a signal."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from streams import topics
from streams.broker.watch import BrokerWatch
from streams.intake.items import Intake
from streams.monitoring import http
from streams.settings import Settings
from streams.sources.delivery import Delivery, read_positions
from streams.sources.runner import Forget, Route, Runner
from streams.sources.source import Source
from streams.stopping import at_signals, before_stop
from streams.topics import CURSORS

log = logging.getLogger(__name__)
Prepare = Callable[[], Awaitable[None]]


async def _nothing() -> None:
    pass


class SourceProcess:
    """Several sources that share a producer. When one of them fails, all end: a supervisor restarts them."""

    def __init__(
        self,
        sources: Sequence[Source],
        intake: Intake,
        settings: Settings,
        *,
        topic: str = "posts",
        forget_authors: Forget | None = None,
    ) -> None:
        self.http_port = 0
        self._sources = sources
        self._settings = settings
        self._route = partial(Route, intake=intake, topic=topic, forget_authors=forget_authors)
        self._required = (topics.by_name(topic), CURSORS)
        self._runners: list[Runner] = []
        self._broker = BrokerWatch(settings)
        self._stop = asyncio.Event()

    def readiness(self) -> dict[str, bool]:
        """For each source whether it is connected and the broker answers."""
        connected = {r.source.name: r.connected for r in self._runners}
        return {s.name: self._broker.up and connected.get(s.name, False) for s in self._sources}

    def stop(self) -> None:
        """Asks `run` to return."""
        self._stop.set()

    async def serve(self, prepare: Prepare = _nothing) -> None:
        """Like `run`, and SIGTERM and SIGINT end it."""
        at_signals(self.stop)
        await self.run(prepare)

    async def run(self, prepare: Prepare = _nothing) -> None:
        """Runs until all sources have an end or `stop`; what is read by then is confirmed, and its position
        kept. A broker that is away is waited for. `prepare` runs before the sources, and again where the
        broker goes away meanwhile.

        Raises TopicsError when topics are missing, SourceFailed when a source refuses, and the errors of the
        producer.
        """
        async with self._serving_http(), AsyncExitStack() as stack:
            if await before_stop(self._stop, self._connect(stack, prepare)):
                log.info("running %s; metrics on port %d", ", ".join(self.readiness()), self.http_port)
                await self._run_all()

    async def _connect(self, stack: AsyncExitStack, prepare: Prepare) -> bool:
        ask = self._broker.until_answered
        await ask(partial(topics.require, self._settings, self._required))
        await ask(prepare)
        positions = await ask(partial(read_positions, self._settings))
        route = self._route(delivery=await stack.enter_async_context(Delivery(self._settings)))
        self._runners = [Runner(s, route, positions.get(s.key)) for s in self._sources]
        return True

    async def _run_all(self) -> None:
        reading = [asyncio.create_task(r.run()) for r in self._runners]
        background = [asyncio.create_task(r.checkpoints()) for r in self._runners]
        background += [asyncio.create_task(self._broker.run())]
        stop = asyncio.create_task(self._stop.wait())
        try:
            await _until_first(stop, reading, background)
        finally:
            for task in (stop, *reading, *background):
                task.cancel()
            await asyncio.gather(stop, *reading, *background, return_exceptions=True)
        async with asyncio.timeout(self._settings.grace):
            for runner in self._runners:
                await runner.checkpoint(last=True)

    @asynccontextmanager
    async def _serving_http(self) -> AsyncIterator[None]:
        host, port = self._settings.http_host, self._settings.http_port
        server, self.http_port = await http.start(host, port, self.readiness, dict, tuple)
        try:
            yield
        finally:
            await server.cleanup()


async def _until_first(
    stop: asyncio.Task[bool], reading: Sequence[asyncio.Task[None]], background: Sequence[asyncio.Task[None]]
) -> None:
    """Waits for the stop, or until all sources have ended; raises the error of a task that failed."""
    pending = {stop, *reading, *background}
    while not stop.done() and not all(task.done() for task in reading):
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
