"""Starts HTTP servers that a client cannot stop: whatever it sends or does not read, the connections, the
descriptors and the memory that it holds are bounded.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import resource
import socket
from collections import Counter
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from streams.monitoring.connection import Connection, Limits, Waiting

log = logging.getLogger(__name__)
#: Seconds that open streams get at the end.
SHUTDOWN_SECONDS = 1.0
#: Headers of a request, each of at most 8 kB.
MAX_HEADERS = 64
#: Connections that the operating system keeps for the server.
BACKLOG = 128
#: Bytes that the operating system keeps for a client. Where it keeps megabytes, it does not show for minutes
#: whether a slow client reads.
SEND_BUFFER = 1 << 16
#: Seconds between two looks at the connections, and between two lines of the log about those that are closed.
SWEEP_SECONDS, LOG_SECONDS = 1.0, 60.0
#: What a process lacks when it can accept no more.
_LACKS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
#: Seconds for closed connections to give back what they held.
_LACKS_SECONDS = 0.05


async def serve(
    app: web.Application, host: str, port: int, limits: Limits | None = None
) -> tuple[web.AppRunner, int]:
    """Serves the application; returns the runner, whose `cleanup` stops it, and the port, which differs from
    `port` when that is 0. Raises OSError where the port is in use or the address is not one of this machine;
    then nothing is left running.
    """
    server = _Connections(limits or Limits())
    app.middlewares.insert(0, server.watched)
    # Not registered by its name, because the filter is that of one server.
    faults = logging.Logger(f"{__name__}.faults", logging.DEBUG)
    faults.parent = log
    faults.addFilter(server.is_fault)
    runner = web.AppRunner(
        app, access_log=None, handler_cancellation=True, shutdown_timeout=SHUTDOWN_SECONDS, logger=faults,
        max_headers=MAX_HEADERS,
    )  # fmt: skip
    await runner.setup()
    site = _Site(runner, host, port, server)
    try:
        await site.start()
    except OSError:
        await runner.cleanup()
        raise
    return runner, site.port


@dataclass(slots=True)
class _Connections:
    """Connections of a server."""

    limits: Limits
    closed: Counter[str] = field(default_factory=Counter)
    """Why connections were closed, since the last line of the log."""
    _open: dict[web.RequestHandler, Connection] = field(default_factory=dict)
    _logged: float = -LOG_SECONDS

    @property
    def watched(self) -> Any:
        """The middleware that knows which connections have a request."""

        @web.middleware
        async def handle(request: web.Request, handler: Any) -> web.StreamResponse:
            self._make_memory()
            connection = self._open.get(request.protocol)
            with connection.handling(request.content) if connection else nullcontext():
                response: web.StreamResponse = await handler(request)
                return response

        return handle

    def protocol(self, inner: web.RequestHandler) -> Connection:
        """The protocol of a new connection around that of aiohttp."""
        connection = self._open[inner] = Connection(inner, self._forget)
        return connection

    def is_fault(self, record: logging.LogRecord) -> bool:
        """Whether what aiohttp logs is a fault of this process. A request that is none is counted, and its
        bytes do not come into the log.
        """
        if record.exc_info and isinstance(record.exc_info[1], HttpProcessingError):
            self.closed[Waiting.NO_HTTP] += 1
            return False
        return record.levelno >= logging.WARNING

    def has_room(self) -> bool:
        """Whether another connection may be opened, for which another one may be closed."""
        most = min(self.limits.connections, _descriptors() // self.limits.share)
        return len(self._open) < most or self.make_room()

    def make_room(self) -> bool:
        """Closes the connection that has waited longest, for the rest of its request or for its reader;
        False where all have a request that is being answered.
        """
        waiting = [c for c in self._open.values() if c.since is not None]
        if waiting:
            self._close(min(waiting, key=lambda c: c.since or 0.0), Waiting.ROOM)
        return bool(waiting)

    def sweep(self) -> None:
        """Closes the connections that have waited too long."""
        for connection in list(self._open.values()):
            if why := connection.overdue(self.limits):
                self._close(connection, why)
        self._make_memory()
        now = asyncio.get_running_loop().time()
        if self.closed and now - self._logged >= LOG_SECONDS:
            kinds = ", ".join(f"{n} {why}" for why, n in sorted(self.closed.items()))
            log.warning("connections to the HTTP server were closed: %s", kinds)
            self.closed.clear()
            self._logged = now

    def _make_memory(self) -> None:
        """Closes connections, the longest waiting first, until the others hold what they may."""
        held = {c: c.unread for c in self._open.values() if c.unread}
        total = sum(held.values())
        for connection in sorted(held, key=lambda c: c.unread_since):
            if total <= self.limits.unread:
                return
            total -= held[connection]
            self._close(connection, Waiting.MEMORY)

    def _close(self, connection: Connection, why: Waiting) -> None:
        if why is not Waiting.IDLE:
            self.closed[why] += 1
        self._forget(connection)
        connection.abort()

    def _forget(self, connection: Connection) -> None:
        self._open.pop(connection.inner, None)


class _Site(web.BaseSite):
    """Accepts connections one by one: asyncio's own server accepts all that wait before it looks at any."""

    def __init__(self, runner: web.AppRunner, host: str, port: int, connections: _Connections) -> None:
        super().__init__(runner)
        self.port = port
        self._host = host
        self._connections = connections
        self._listeners: list[socket.socket] = []
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def name(self) -> str:
        return f"http://{self._host}:{self.port}"

    async def start(self) -> None:
        await super().start()
        loop = asyncio.get_running_loop()
        # It finds and binds the addresses, and is not used otherwise.
        bound = await loop.create_server(asyncio.Protocol, self._host, self.port, start_serving=False)
        self._listeners = [listener.dup() for listener in bound.sockets]
        bound.close()
        for listener in self._listeners:
            listener.setblocking(False)
            listener.listen(BACKLOG)
        self.port = self._listeners[0].getsockname()[1]
        self._tasks = [asyncio.create_task(self._accept(listener)) for listener in self._listeners]
        self._tasks.append(asyncio.create_task(self._sweep()))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for listener in self._listeners:
            listener.close()
        await super().stop()

    async def _accept(self, listener: socket.socket) -> None:
        loop, server = asyncio.get_running_loop(), self._runner.server
        assert server is not None
        while True:
            try:
                client, _ = await loop.sock_accept(listener)
            except OSError as error:
                if error.errno in _LACKS:
                    self._connections.closed[Waiting.LACK] += 1
                    self._connections.make_room()
                    await asyncio.sleep(_LACKS_SECONDS)
                continue
            if not self._connections.has_room():
                self._connections.closed[Waiting.ROOM] += 1
                client.close()
                continue
            with suppress(OSError):
                client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
                await loop.connect_accepted_socket(lambda: self._connections.protocol(server()), client)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self._connections.sweep()


def _descriptors() -> int:
    """Files and connections that this process may have open."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 1 << 20 if soft == resource.RLIM_INFINITY else soft
