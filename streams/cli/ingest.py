"""Reads reports from JSON Lines and sends them to an input topic; invalid lines are refused, not sent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from aiokafka import AIOKafkaProducer

from streams.broker.consumer import running_client
from streams.codec import BadRecord
from streams.inputs import as_input, read_report
from streams.records import Report
from streams.settings import Settings
from streams.topics import MAX_MESSAGE, broker_name

#: A longer line could not become a message that every broker accepts; the rest of it is skipped, not kept in
#: memory.
MAX_LINE = MAX_MESSAGE - 4096
#: Most sends that wait for the broker's confirmation.
MAX_UNCONFIRMED = 500
#: Seconds that a rate may be behind and is made up for: a sleep is often a little longer than asked for.
MAKE_UP_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Refusal:
    """A line that is not sent; `reason` does not quote it."""

    line: int
    reason: str


def read_reports(
    file: BinaryIO, parse: Callable[[bytes], Report] = read_report
) -> Iterator[Report | Refusal]:
    """A report or a refusal for each line that is not empty; `parse` raises BadRecord."""
    number = 0
    while line := file.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            while line and not line.endswith(b"\n"):
                line = file.readline(MAX_LINE)
            yield Refusal(number, f"longer than {MAX_LINE} bytes")
            continue
        if line.strip():
            try:
                yield parse(line)
            except BadRecord as error:
                yield Refusal(number, str(error))


class Sender:
    """An idempotent producer with a limited number of unconfirmed sends; an async context manager."""

    def __init__(self, settings: Settings) -> None:
        self._producer = AIOKafkaProducer(
            **settings.client(), acks="all", enable_idempotence=True, linger_ms=5
        )
        self._running = running_client(self._producer)
        self._settings = settings
        self._pending: list[Awaitable[Any]] = []

    async def __aenter__(self) -> Sender:
        await self._running.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self.confirm()
        finally:
            await self._running.__aexit__(None, None, None)

    async def send(self, topic: str, report: Report) -> None:
        """Sends a report; raises the error of an earlier send if that failed."""
        name = broker_name(self._settings, topic)
        self._pending.append(await self._producer.send(name, key=report.id.encode(), value=as_input(report)))
        if len(self._pending) >= MAX_UNCONFIRMED:
            await self.confirm()

    async def confirm(self) -> None:
        """Waits until everything sent is confirmed."""
        pending, self._pending = self._pending, []
        await asyncio.gather(*pending)


class RateLimit:
    """Limits a loop to `rate` turns per second; 0: no limit. What a loop that waited for something else has
    missed is not made up for at once.
    """

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._due = clock()

    async def wait(self) -> None:
        """Waits until the next turn is due."""
        if self._rate > 0:
            now = self._clock()
            self._due = max(self._due + 1 / self._rate, now - MAKE_UP_SECONDS)
            await asyncio.sleep(max(0.0, self._due - now))
