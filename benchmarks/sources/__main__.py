"""Is anything of a live source lost when its server misbehaves and when its process is killed?

Local servers play the protocols. In the first part each makes random faults: it cuts the connection, also in
the middle of a message, sends garbage, 2 MB posts, wrong times, the same twice or in another order, falls
silent, or answers 429 and 503. In the second part a process with five sources is killed again and again. At
the end the input topic must have the last version of each post, a tombstone for each deletion, and no other
key.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from benchmarks.machine import print_and_write, provenance
from benchmarks.sources.found import Found, counting
from benchmarks.sources.kills import kill_run
from streams.broker.embedded import EmbeddedBroker
from streams.intake.intake import PostIntake
from streams.settings import Settings
from streams.sources.process import SourceProcess
from streams.sources.protocols.bluesky import Bluesky
from streams.sources.protocols.mastodon import Mastodon
from streams.sources.protocols.x import X
from streams.sources.protocols.x_compliance import Compliance
from streams.sources.source import Source
from streams.sources.sweep import Sweep, kept_on
from streams.topics import POSTS
from tests.streams.sources.kept import FAST
from tests.streams.sources.players import mastodon_api, x_api
from tests.streams.sources.players.faults import Faults
from tests.streams.sources.players.jetstream import Jetstream, post_id
from tests.streams.sources.players.server import StreamPlayer
from tests.streams.sources.players.world import World

#: Seconds that a run may take.
RUN_SECONDS = 900.0
#: Half seconds for which the topic must stay complete.
SETTLED = 8
#: Keep-alive of the sources, and the silence of the servers, in seconds. The times of the protocols are
#: scaled down, so that a thousand faults take minutes.
KEEP_ALIVE, SILENCE = 0.4, 0.9
Expected = Callable[[], dict[str, str | None]]
Play = tuple[StreamPlayer, Callable[[Settings], list[Source]], Expected]
"""A server, the sources that read it, and what must be on the topic at the end."""


def bluesky(world: World, faults: Faults) -> Play:
    player = Jetstream(world, faults)
    return (
        player,
        lambda settings: [Bluesky(servers=[player.endpoint], backoff=FAST, silence=KEEP_ALIVE, rewind=1.0)],
        lambda: {post_id(n): text for n, text in world.final.items()},
    )


def x(world: World, faults: Faults) -> Play:
    player = x_api.XApi(world, faults)

    def sources(settings: Settings) -> list[Source]:
        compliance = Compliance(token=x_api.TOKEN, server=player.url, poll=0.1)
        return [
            X(
                token=x_api.TOKEN, server=player.url, rules=["a"], backoff=FAST, silence=KEEP_ALIVE,
                backfill=5,
            ),
            Sweep(
                name="x-deletions", key="x/deletions", prefix="x:", kept=kept_on(settings, POSTS),
                check=compliance.check, every=5.0, least=1.0, backoff=FAST,
            ),
        ]  # fmt: skip

    return player, sources, lambda: {f"x:{x_api.tweet_id(n)}": text for n, text in world.final.items()}


def mastodon(world: World, faults: Faults) -> Play:
    player = mastodon_api.MastodonApi(world, faults)

    def sources(settings: Settings) -> list[Source]:
        stream = Mastodon(
            server=player.url, token=mastodon_api.TOKEN, backoff=FAST, silence=KEEP_ALIVE, rewind=5.0
        )
        sweep = Sweep(
            name="mastodon-deletions", key=f"{stream.key}/deletions", prefix=stream.prefix,
            kept=kept_on(settings, POSTS), check=stream.check, every=10.0, least=5.0, backoff=FAST,
            due=stream.missed,
        )  # fmt: skip
        return [stream, sweep]

    return player, sources, player.expected


PROTOCOLS = {"bluesky": bluesky, "x": x, "mastodon": mastodon}
KILLED = "all five, killed"
PARTS = (*PROTOCOLS, KILLED)


async def fault_run(name: str, faults: int, seed: int) -> dict[str, Any]:
    """One protocol through so many faults, on an embedded broker."""
    made = Faults(seed=seed + 1, count=faults, every=4, silence=SILENCE)
    # What happens during an interruption has no fault of its own on Mastodon, whose stream has no cursor.
    posts = faults * (16 if name == "mastodon" else 4)
    world = World.made(seed, posts, delete_first=name == "bluesky")
    player, sources, expected = PROTOCOLS[name](world, made)
    player.keeps_alive = True
    began = time.monotonic()
    async with AsyncExitStack() as stack:
        broker = stack.enter_context(EmbeddedBroker())
        settings = Settings(broker=f"kafka://{broker.bootstrap}", http_port=0)
        await stack.enter_async_context(player)
        found = await stack.enter_async_context(counting(settings))
        process = SourceProcess(sources(settings), PostIntake.of(settings, everything=True), settings)
        task = asyncio.create_task(process.run())
        try:
            async with asyncio.timeout(RUN_SECONDS):
                await _settled(found, expected, world, task)
        except TimeoutError:
            print(f"{name}: not complete within {RUN_SECONDS:.0f} s")
        process.stop()
        await task
        await asyncio.sleep(0.5)
    seconds = round(time.monotonic() - began, 1)
    kinds = {kind: made.made[kind] for kind in sorted(made.made)}
    counts = {"faults": sum(kinds.values()), "kills": 0, "connections": player.connections}
    return counts | found.compared(expected()) | {"seconds": seconds, "kinds": kinds}


async def _settled(found: Found, expected: Expected, world: World, task: asyncio.Task[None]) -> None:
    """Waits until the world is over and the topic has all of it, and still has it after the last repeats:
    after an interruption an edited post comes first as it was.
    """
    complete = 0
    while complete < SETTLED and not task.done():
        await asyncio.sleep(0.5)
        figures = found.compared(expected())
        complete = complete + 1 if world.is_over and not figures["lost"] + figures["deletions_missing"] else 0


def measured(part: str, faults: int, kills: int, seed: int) -> dict[str, Any]:
    """The figures of one part, with the commit that they were measured at."""
    run = kill_run(kills, seed) if part == KILLED else fault_run(part, faults, seed)
    return asyncio.run(run) | {"commit": provenance("sources")["commit"]}


def main(
    parts: Annotated[list[str] | None, typer.Argument(help=f"of {', '.join(PARTS)}; by default all")] = None,
    faults: Annotated[int, typer.Option(help="faults of each protocol")] = 1000,
    kills: Annotated[int, typer.Option(help="kills of the process")] = 20,
    seed: Annotated[int, typer.Option(help="of the worlds and the faults")] = 7,
    json: Annotated[
        Path | None, typer.Option(help="write the figures here; other parts there are kept")
    ] = None,
) -> None:
    """Measures losses by faults and by kills."""
    earlier = orjson.loads(json.read_bytes())["rows"] if json is not None and json.exists() else {}
    new = {}
    for part in parts or PARTS:
        new[part] = measured(part, faults, kills, seed)
        typer.echo(f"{part}: {new[part]}", err=True)
    rows = {part: row for part in PARTS if (row := new.get(part, earlier.get(part))) is not None}
    figures = {
        "lost": sum(row["lost"] for row in rows.values()),
        "deletions_missing": sum(row["deletions_missing"] for row in rows.values()),
        "rows": rows,
    }
    print_and_write(figures | provenance("sources"), json)


if __name__ == "__main__":
    typer.run(main)
