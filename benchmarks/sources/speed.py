"""How many posts a second of processor time one Jetstream source takes in: of a stream whose posts are mostly
about other things, with filter, masking and duplicates; and where every post passes, masked and compared.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from aiohttp import web

from benchmarks.machine import print_and_write, provenance
from benchmarks.sources.intake import stream
from streams import metrics
from streams.broker.embedded import EmbeddedBroker
from streams.intake.intake import PostIntake
from streams.settings import Settings
from streams.sources.process import SourceProcess
from streams.sources.protocols.bluesky import POSTS, Bluesky
from tests.streams.polling import until
from training.common.program_help import run_program

#: Seconds that a run may take.
RUN_SECONDS = 300.0
OUTCOMES = ("sent", "filtered")


def events(posts: int) -> list[str]:
    """The posts of `benchmarks.sources.intake` as Jetstream sends them."""
    now = time.time_ns() // 1000
    return [_event(post, now + i) for i, post in enumerate(stream(posts))]


def _event(post: dict[str, Any], at: int) -> str:
    record = {"$type": POSTS, "createdAt": "2026-03-04T09:15:02.102Z", "text": post["text"]}
    record |= {"langs": [post["language"]]} if post["language"] else {}
    commit = {
        "rev": "3l3qo2vutsw2b", "operation": "create", "collection": POSTS, "rkey": post["id"][5:].zfill(13),
        "record": record, "cid": "bafyreidwaivazkwu67xztlmuobx35hs2lnfh3kolmgfmucldvhd3sgzcqi",
    }  # fmt: skip
    did = f"did:plc:{post['author']:a>24}"
    return orjson.dumps({"did": did, "time_us": at, "kind": "commit", "commit": commit}).decode()


def serve(connection: Connection) -> None:
    """Sends the events to each client, as fast as it reads, in a process of its own."""
    lines: list[str] = connection.recv()

    async def subscribe(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        for line in lines:
            await socket.send_str(line)
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


def taken(outcome: str) -> float:
    labels = {"source": "bluesky", "outcome": outcome}
    return metrics.REGISTRY.get_sample_value("pv_source_items_total", labels) or 0.0


async def one_run(port: int, posts: int, *, everything: bool) -> dict[str, float]:
    """Figures of the source's thread; those of the embedded broker do not count."""
    with EmbeddedBroker() as broker:
        settings = Settings(broker=f"kafka://{broker.bootstrap}", http_port=0, author_key="0123456789abcdef")  # type: ignore[arg-type]
        source = Bluesky(servers=[f"ws://127.0.0.1:{port}/subscribe"])
        process = SourceProcess([source], PostIntake.of(settings, everything=everything), settings)
        before = {outcome: taken(outcome) for outcome in OUTCOMES}
        task = asyncio.create_task(process.run())
        await until(lambda: sum(map(taken, OUTCOMES)) > sum(before.values()), RUN_SECONDS)
        first, processor = sum(map(taken, OUTCOMES)) - sum(before.values()), time.thread_time()
        await until(lambda: sum(map(taken, OUTCOMES)) >= sum(before.values()) + posts, RUN_SECONDS)
        used = time.thread_time() - processor
        process.stop()
        await task
    return {
        "posts": posts,
        "sent": int(taken("sent") - before["sent"]),
        "posts_per_second_of_processor": round((posts - first) / used),
        "microseconds_of_processor_a_post": round(1e6 * used / (posts - first), 1),
    }


def speed(posts: int, rounds: int = 1) -> dict[str, dict[str, float]]:
    """Figures of both kinds of stream; of several rounds, which take turns, the best."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    server = context.Process(target=serve, args=(theirs,))
    server.start()
    try:
        ours.send(events(posts))
        port = ours.recv()
        kinds = {"a stream, 5 % about drugs": False, "every post passes": True}
        rows: dict[str, dict[str, float]] = {}
        for _ in range(rounds):
            for kind, everything in kinds.items():
                found = asyncio.run(one_run(port, posts, everything=everything))
                best = rows.get(kind, found)["posts_per_second_of_processor"]
                rows[kind] = found if found["posts_per_second_of_processor"] >= best else rows[kind]
        return rows
    finally:
        ours.send(None)
        server.join(10)
        if server.is_alive():
            server.kill()


def main(
    posts: Annotated[int, typer.Option(min=1000, help="posts of a run")] = 20_000,
    rounds: Annotated[int, typer.Option(min=1, help="runs of each kind, of which the best counts")] = 3,
    json: Annotated[Path | None, typer.Option(help="write the figures here")] = None,
) -> None:
    rows = speed(posts, rounds)
    print_and_write({"rounds": rounds, **provenance("sources.speed"), "rows": rows}, json)


if __name__ == "__main__":
    run_program(main)
