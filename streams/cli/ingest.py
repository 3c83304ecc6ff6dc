"""Lines of JSON to reports on an input topic; a line that is no report is refused by number and reason, not
sent.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, BinaryIO

from aiokafka import AIOKafkaProducer

from streams.codec import BadRecord, decode, encode
from streams.records import Report
from streams.settings import Settings
from streams.topics import MAX_MESSAGE

#: A longer line cannot become a message that every broker takes; the rest of it is read past, not into
#: memory.
MAX_LINE = MAX_MESSAGE - 4096
#: Sends that may wait for the broker's confirmation at a time.
UNCONFIRMED = 500


@dataclass(frozen=True, slots=True)
class Refusal:
    """A line that was not sent; `reason` does not quote it."""

    line: int
    reason: str


def read_reports(file: BinaryIO, topic: str) -> Iterator[Report | Refusal]:
    """A report or a refusal for each line that is not empty. What only the pipeline may say is set here."""
    number = 0
    while line := file.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            while line and not line.endswith(b"\n"):
                line = file.readline(MAX_LINE)
            yield Refusal(number, f"longer than {MAX_LINE} bytes")
            continue
        if line.strip():
            yield _parse(number, line, topic)


def _parse(number: int, line: bytes, topic: str) -> Report | Refusal:
    try:
        report = decode(Report, line)
    except BadRecord as error:
        return Refusal(number, str(error))
    return replace(report, source=topic, received_at=datetime.now(UTC), releases={}, record_id="")


class Sender:
    """An idempotent producer that keeps a bounded number of sends unconfirmed; use as an async context
    manager.
    """

    def __init__(self, settings: Settings) -> None:
        self._producer = AIOKafkaProducer(
            **settings.client(), acks="all", enable_idempotence=True, linger_ms=5
        )
        self._pending: list[Awaitable[Any]] = []

    async def __aenter__(self) -> Sender:
        await self._producer.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self.confirm()
        finally:
            await self._producer.stop()

    async def send(self, topic: str, report: Report) -> None:
        """Raises what the broker answered to an earlier send, where that failed."""
        self._pending.append(await self._producer.send(topic, key=report.id.encode(), value=encode(report)))
        if len(self._pending) >= UNCONFIRMED:
            await self.confirm()

    async def confirm(self) -> None:
        """Waits until everything sent is confirmed."""
        pending, self._pending = self._pending, []
        await asyncio.gather(*pending)


class Pace:
    """Holds a loop to `rate` turns a second; 0: no limit."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._start = clock()
        self._turns = 0

    async def turn(self) -> None:
        self._turns += 1
        if self._rate > 0:
            await asyncio.sleep(max(0.0, self._start + self._turns / self._rate - self._clock()))
