"""How many posts a second of processor time one Jetstream source takes in, without filter and masking."""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from multiprocessing.connection import Connection

from aiohttp import web

from streams.broker.embedded import EmbeddedBroker
from streams.intake.intake import PostIntake
from streams.settings import Settings
from streams.sources.process import SourceProcess
from streams.sources.protocols.bluesky import Bluesky
from tests.streams.polling import until
from tests.streams.sources.players.jetstream import commit
from tests.streams.sources.players.running import sample
from tests.streams.sources.players.world import Happening

TEXT = "Day three on this drug and I have not slept at all, my hands shake and I feel sick. " * 2
#: Seconds that a run may take.
RUN_SECONDS = 300.0


def serve(connection: Connection, posts: int) -> None:
    """Sends so many posts to each client, as fast as it reads, in a process of its own."""

    async def subscribe(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        now = time.time()
        for n in range(posts):
            happening = Happening(kind="create", number=n, text=f"{n} {TEXT}", at=now + n * 1e-6)
            await socket.send_str(commit(happening).decode())
        await socket.receive()
        return socket

    async def run() -> None:
        app = web.Application()
        app.add_routes([web.get("/subscribe", subscribe)])
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        connection.send(runner.addresses[0][1])
        await asyncio.to_thread(connection.recv)

    asyncio.run(run())


async def speed(posts: int) -> dict[str, float]:
    """Posts a second of the source's thread; the threads of the embedded broker do not count."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    server = context.Process(target=serve, args=(theirs, posts))
    server.start()
    try:
        port = await asyncio.to_thread(ours.recv)
        with EmbeddedBroker() as broker:
            settings = Settings(broker=f"kafka://{broker.bootstrap}", http_port=0)
            source = Bluesky(servers=[f"ws://127.0.0.1:{port}/subscribe"])
            process = SourceProcess([source], PostIntake.of(settings, everything=True), settings)
            before = sample("pv_source_items_total", source="bluesky", outcome="sent")
            processor, clock = time.thread_time(), time.monotonic()
            task = asyncio.create_task(process.run())
            await until(
                lambda: sample("pv_source_items_total", source="bluesky", outcome="sent") >= before + posts,
                RUN_SECONDS,
            )
            process.stop()
            await task
            used, seconds = time.thread_time() - processor, time.monotonic() - clock
        return {
            "posts_for_speed": posts,
            "posts_per_second_of_processor": round(posts / used),
            "posts_per_second": round(posts / seconds),
        }
    finally:
        ours.send(None)
        server.join(10)
        if server.is_alive():
            server.kill()
