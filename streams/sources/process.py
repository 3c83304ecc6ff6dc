"""A process that runs sources: it resumes them, serves metrics and readiness, and drains on a signal."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

from streams import topics
from streams.broker.watch import BrokerWatch
from streams.intake.items import Intake
from streams.monitoring import http
from streams.settings import Settings
from streams.sources.delivery import Delivery, read_positions
from streams.sources.runner import Forget, Route, Runner
from streams.sources.source import Source
from streams.topics import CURSORS

log = logging.getLogger(__name__)


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
        return {r.source.name: self._broker.up and r.connected for r in self._runners}

    def stop(self) -> None:
        """Asks `run` to return."""
        self._stop.set()

    async def serve(self) -> None:
        """Like `run`, and SIGTERM and SIGINT end it."""
        loop = asyncio.get_running_loop()
        for stop_signal in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(stop_signal, self.stop)
        await self.run()

    async def run(self) -> None:
        """Runs until all sources have an end or `stop`; what is read by then is confirmed, and its position
        kept.

        Raises TopicsError when topics are missing, SourceFailed when a source refuses, and the errors of the
        producer.
        """
        await topics.require(self._settings, self._required)
        positions = await read_positions(self._settings)
        async with Delivery(self._settings) as delivery, self._serving_http():
            route = self._route(delivery=delivery)
            self._runners = [Runner(s, route, positions.get(s.key)) for s in self._sources]
            log.info("running %s; metrics on port %d", ", ".join(self.readiness()), self.http_port)
            await self._run_all()

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
