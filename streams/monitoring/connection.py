"""One connection to an HTTP server: what it waits for, and since when."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import cast

from aiohttp import StreamReader, web


@dataclass(frozen=True, slots=True)
class Limits:
    """What the clients of one server may hold."""

    connections: int = 128
    share: int = 4
    """Of the descriptors of the process, one in so many may be a connection."""
    request: float = 10.0
    """Seconds for a whole request."""
    idle: float = 75.0
    """Seconds between two requests over one connection: longer than a proxy waits, which would else send a
    request into a connection that is being closed.
    """
    reading: float = 20.0
    """Seconds in which a client must read `least` bytes of an answer, or all that is left."""
    least: int = 16 << 10
    unread: int = 16 << 20
    """Bytes of all answers that wait for their readers."""


class Waiting(StrEnum):
    """Why a connection is closed."""

    REQUEST = "without a whole request"
    READER = "that did not read their answer"
    ROOM = "for want of room"
    MEMORY = "that left too much unread"
    LACK = "for want of descriptors"
    NO_HTTP = "that sent no HTTP"
    IDLE = "idle"


class Connection(asyncio.Protocol):
    """Passes everything on to aiohttp's protocol, and notes when."""

    def __init__(self, inner: web.RequestHandler, closed: Callable[[Connection], object]) -> None:
        self.inner = inner
        self._closed = closed
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._waits: float | None = self._loop.time()
        """Since when it waits for a whole request; None while one is answered."""
        self._has_part = self._has_asked = self._answers = False
        self._window: tuple[float, int] | None = None
        """When and how much of an answer was left unread."""

    @property
    def since(self) -> float | None:
        """Since when it waits for its client; None while a request is answered that can go on."""
        return self._waits if self._window is None else self._window[0]

    @property
    def unread(self) -> int:
        """Bytes that its client has not read, beside those in the operating system's buffers."""
        return self._transport.get_write_buffer_size() if self._transport else 0

    @property
    def unread_since(self) -> float:
        return self._window[0] if self._window else self._loop.time()

    def abort(self) -> None:
        """Closes it at once, with what is not sent."""
        if self._transport is not None:
            self._transport.abort()

    @contextmanager
    def handling(self, body: StreamReader) -> Iterator[None]:
        """The time in which a request is answered; its body may not be whole yet."""
        self._has_part, self._has_asked, self._answers = False, True, True
        if body.is_eof():
            self._waits = None
        else:
            self._has_part = True
            body.on_eof(self._is_whole)
        try:
            yield
        finally:
            self._answers = False
            self._waits = self._loop.time()

    def overdue(self, limits: Limits) -> Waiting | None:
        """Why it is to be closed, if it is. Called regularly."""
        now, unread = self._loop.time(), self.unread
        if unread:
            began, before = self._window = self._window or (now, unread)
            if now - began < limits.reading:
                return None
            self._window = now, unread
            return Waiting.READER if unread > before - limits.least else None
        if self._window is not None:
            self._window = None
            self._waits = now if self._waits is not None else None
        if self._waits is None:
            return None
        is_idle = self._has_asked and not self._has_part
        if now - self._waits < (limits.idle if is_idle else limits.request):
            return None
        # A browser opens connections in advance.
        return Waiting.REQUEST if self._has_part else Waiting.IDLE

    def _is_whole(self) -> None:
        self._has_part = False
        self._waits = None if self._answers else self._loop.time()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.inner.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed(self)
        self.inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._waits is not None and not self._has_part:
            self._has_part = True
            if self._has_asked:
                self._waits = self._loop.time()
        self.inner.data_received(data)

    def eof_received(self) -> None:
        self.inner.eof_received()

    def pause_writing(self) -> None:
        self.inner.pause_writing()

    def resume_writing(self) -> None:
        self.inner.resume_writing()
