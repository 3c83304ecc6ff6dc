"""Live posts as the input of the demo, no more of them at once than its broker holds."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from streams.cli.feed import Tally, wait_for_arrival, wait_for_capacity
from streams.intake.items import Intake
from streams.settings import Settings
from streams.sources.delivery import Delivery
from streams.sources.runner import Route, Runner
from streams.sources.source import Source
from streams.stopping import at_signals


class _AdmittedDelivery(Delivery):
    """Waits until the broker has capacity and counts what it sends; an id is sent once. Sets `full` after
    `limit` reports (0: never).
    """

    def __init__(self, settings: Settings, tally: Tally, limit: int) -> None:
        super().__init__(settings)
        self.full = asyncio.Event()
        self._tally = tally
        self._limit = limit

    async def send(self, topic: str, key: str, value: bytes | None) -> asyncio.Future[Any]:
        known = self._tally.was_sent(topic, key)
        if value is not None and (known or self.full.is_set()):
            left_out: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            left_out.set_result(None)
            return left_out
        if value is not None and topic == "posts":
            await wait_for_capacity(self._tally, len(value))
            self._tally.count_sent(topic, key, len(value))
            if self._tally.inputs[topic] == self._limit:
                self.full.set()
        return await super().send(topic, key, value)


async def read_live(
    sources: Sequence[Source], intake: Intake, settings: Settings, tally: Tally, limit: int
) -> None:
    """Sends live posts until there were `limit` (0: no limit) or an interrupt, then waits until they have
    come out. Raises the errors of the sources, and TimeoutError where nothing comes out.
    """
    async with _AdmittedDelivery(settings, tally, limit) as delivery:
        route = Route(delivery=delivery, intake=intake, topic="posts")
        reading = [asyncio.create_task(Runner(source, route, None).run()) for source in sources]
        ends = [asyncio.create_task(delivery.full.wait()), asyncio.create_task(interrupted())]
        try:
            done, _ = await asyncio.wait([*reading, *ends], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in (*reading, *ends):
                task.cancel()
            await asyncio.gather(*reading, *ends, return_exceptions=True)
    while tally.missing:
        await wait_for_arrival(tally)


async def interrupted() -> None:
    """Waits for SIGINT or SIGTERM."""
    stop = asyncio.Event()
    at_signals(stop.set)
    await stop.wait()
