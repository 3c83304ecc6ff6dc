"""An edge for runners: keeps what is sent, in the place of a broker."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import orjson

from streams.intake.items import Item
from streams.sources.runner import Route, Runner
from streams.sources.source import Backoff, Position, Ramp, Source, Step
from tests.streams.sources.pass_all import PassAll

FAST = Backoff(network=Ramp(0.005, 0.02), http=Ramp(0.005, 0.02), limited=Ramp(0.005, 0.02), longest=0.05)


class KeptDelivery:
    """Confirms every send at once, or when `confirm` is called if `holds`."""

    def __init__(self, holds: bool = False) -> None:
        self.sent: list[tuple[str, str, bytes | None]] = []
        self.positions: list[tuple[str, Position, int]] = []
        """Each with the number of sends that were confirmed before."""
        self.holds = holds
        self._last: dict[str, bytes | None] = {}
        self._futures: list[asyncio.Future[None]] = []
        self.confirmed = 0

    async def send(self, topic: str, key: str, value: bytes | None) -> asyncio.Future[Any]:
        self.sent.append((topic, key, value))
        self._last[key] = value
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._futures.append(future)
        if not self.holds:
            self.confirm()
        return future

    def confirm(self, error: Exception | None = None) -> None:
        for future in self._futures:
            if error is None:
                self.confirmed += 1
                future.set_result(None)
            else:
                future.set_exception(error)
        self._futures.clear()

    async def write_position(self, source: str, position: Position) -> None:
        self.positions.append((source, position, self.confirmed))

    def state(self) -> dict[str, str | None]:
        """The last text of each key; None after a tombstone."""
        return {key: orjson.loads(value)["text"] if value else None for key, value in self._last.items()}

    async def kept(self, prefix: str) -> list[str]:
        """The keys with the prefix that are not deleted, as a sweep asks for them."""
        return [key for key, text in self.state().items() if text is not None and key.startswith(prefix)]

    def deleted(self) -> set[str]:
        return {key for _, key, value in self.sent if value is None}


def runner(
    source: Source, delivery: KeptDelivery, position: Position | None = None, **options: Any
) -> Runner:
    route = Route(delivery=delivery, intake=options.pop("intake", PassAll()), topic="posts", **options)  # type: ignore[arg-type]
    return Runner(source, route, position)


class Scripted:
    """A source whose steps are given; then it ends."""

    def __init__(self, *steps: Step | Exception, reuses_ids: bool = False) -> None:
        self.name = self.key = "scripted"
        self.backoff, self.reuses_ids = FAST, reuses_ids
        self.starts: list[Position | None] = []
        self._steps = list(steps)

    async def read(self, position: Position | None):  # type: ignore[no-untyped-def]
        self.starts.append(position)
        while self._steps:
            step = self._steps.pop(0)
            if isinstance(step, Exception):
                raise step
            yield step


def step(*items: Item, **fields: Any) -> Step:
    return Step(items=items, **fields)


def texts(values: Sequence[tuple[str, str, bytes | None]]) -> list[str]:
    return [orjson.loads(value)["text"] for _, _, value in values if value is not None]
