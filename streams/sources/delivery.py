"""Sends reports, tombstones and positions, and reads the positions back at a start."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Collection
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from aiokafka.errors import KafkaTimeoutError

from streams.broker.consumer import kafka_producer, running_client
from streams.broker.patience import wait_at_start
from streams.broker.ranges import read_chunks
from streams.codec import BadRecord, decode, encode
from streams.records import Cursor
from streams.settings import Settings
from streams.sources.source import Position
from streams.topics import CURSORS, broker_name

log = logging.getLogger(__name__)
#: Most sends of a source that wait for the broker's confirmation. Until there are fewer, nothing more is read
#: from the source.
MAX_UNCONFIRMED = 500


class Delivery:
    """The idempotent producer that all sources of a process share; an async context manager."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._producer = kafka_producer(settings, linger_ms=5)
        wait_at_start(self._producer.client)
        self._running = running_client(self._producer)

    async def __aenter__(self) -> Self:
        await self._running.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._running.__aexit__(None, None, None)

    async def send(self, topic: str, key: str, value: bytes | None) -> asyncio.Future[Any]:
        """A future that is done once the broker has confirmed the record. While the broker is away and the
        producer's buffer full, this waits.
        """
        name = broker_name(self._settings, topic)
        while True:
            try:
                sent: asyncio.Future[Any] = await self._producer.send(name, key=key.encode(), value=value)
            except KafkaTimeoutError:
                # The producer has waited for 40 s and not taken the record. To end would lose what a source
                # without a position, such as a pipe, has given already.
                continue
            return sent

    async def write_position(self, source: str, position: Position) -> None:
        """Keeps the position of a source; returns once it is confirmed."""
        cursor = Cursor(source=source, position=dict(position), written_at=datetime.now(UTC))
        await confirmed([await self.send(CURSORS.name, source, encode(cursor))])


class Window:
    """The sends of one source that are not confirmed, at most `limit` of them."""

    def __init__(self, limit: int = MAX_UNCONFIRMED) -> None:
        self._limit = limit
        self._sends: deque[asyncio.Future[Any]] = deque()

    async def add(self, sent: asyncio.Future[Any]) -> None:
        """Waits while there are too many; raises the error of a send that failed."""
        self._sends.append(sent)
        while self._sends and (len(self._sends) > self._limit or self._sends[0].done()):
            await confirmed([self._sends[0]])
            self._sends.popleft()

    async def confirm(self) -> None:
        """Waits for all sends that were made before the call; raises the error of one that failed."""
        await confirmed(list(self._sends))


async def confirmed(sends: Collection[asyncio.Future[Any]]) -> None:
    """Waits for the sends without cancelling them if the waiting is cancelled; raises their first error."""
    if sends:
        await asyncio.wait(sends)
    for sent in sends:
        sent.result()


async def read_positions(settings: Settings) -> dict[str, Position]:
    """The last position of each source, by its key."""
    positions: dict[str, Position] = {}
    async for records in read_chunks(settings, CURSORS, "beginning", "end", lambda done, total: None):
        for record in records:
            key = (record.key or b"").decode(errors="replace")
            try:
                positions[key] = decode(Cursor, record.value).position
            except BadRecord:
                positions.pop(key, None)
                log.warning(
                    "a position on %s is deleted or not readable: its source starts anew", CURSORS.name
                )
    return positions
