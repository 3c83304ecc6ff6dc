"""A server of live posts in a thread, for `pvstream source bluesky`, that a test can make silent."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from aiohttp import web

from tests.streams.sources.players.jetstream import commit, event
from tests.streams.sources.players.world import Happening

START_S = 30.0


class LiveStream:
    """Sends ten messages a second: posts while `talks`, else what keeps the connection."""

    def __init__(self) -> None:
        self.talks = True
        self.endpoint = ""
        self.started = threading.Event()
        self.ended = asyncio.Event()
        self.loop = asyncio.new_event_loop()

    async def serve(self) -> None:
        app = web.Application()
        app.add_routes([web.get("/subscribe", self._subscribe)])
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.endpoint = f"ws://127.0.0.1:{runner.addresses[0][1]}/subscribe"
        self.started.set()
        await self.ended.wait()
        await runner.cleanup()

    async def _subscribe(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        number = 0
        with suppress(ConnectionError, RuntimeError):
            while not self.ended.is_set():
                now, number = time.time(), number + 1
                post = Happening(kind="create", number=number, text="zoloft made me sleepy", at=now)
                message = commit(post) if self.talks else event("identity", now, identity={})
                await socket.send_str(message.decode())
                await asyncio.sleep(0.1)
        return socket


@contextmanager
def live_stream() -> Iterator[LiveStream]:
    """Serves for the time of the block."""
    stream = LiveStream()
    thread = threading.Thread(target=stream.loop.run_until_complete, args=(stream.serve(),), daemon=True)
    thread.start()
    try:
        assert stream.started.wait(START_S)
        yield stream
    finally:
        stream.loop.call_soon_threadsafe(stream.ended.set)
        thread.join(START_S)
        stream.loop.close()
