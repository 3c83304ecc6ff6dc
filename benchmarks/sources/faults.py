"""Sources through random faults of their servers, and of a file that grows."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from benchmarks.sources.behind import worked_off
from benchmarks.sources.found import Found, counting
from streams.intake.intake import PostIntake
from streams.settings import Settings
from streams.sources.process import SourceProcess
from streams.sources.protocols.bluesky import Bluesky
from streams.sources.protocols.mastodon import Mastodon
from streams.sources.protocols.ndjson import Ndjson
from streams.sources.protocols.rss import Rss
from streams.sources.protocols.x import X
from streams.sources.protocols.x_compliance import Compliance
from streams.sources.source import Source
from streams.sources.sweep import Sweep, kept_on
from streams.topics import POSTS
from tests.streams.sources.kept import FAST
from tests.streams.sources.players import mastodon_api, x_api
from tests.streams.sources.players.faults import Faults
from tests.streams.sources.players.feeds import Feed
from tests.streams.sources.players.jetstream import Jetstream, post_id
from tests.streams.sources.players.lines import FILE_FAULTS, LinesFile
from tests.streams.sources.players.world import World

#: Seconds that a run may take.
RUN_SECONDS = 1800.0
#: Half seconds for which the topic must stay complete.
SETTLED = 8
#: Keep-alive of the sources, and the silence of the servers, in seconds. The times of the protocols are
#: scaled down, so that a thousand faults take minutes.
KEEP_ALIVE, SILENCE = 0.4, 0.9
#: Happenings a second on Mastodon, where those of an interruption have no faults, and in the feed.
SERVER_RATE, FEED_RATE = 300.0, 100.0
#: Posts that X sends again at a connection, and entries that the feed shows: enough for what may have been
#: missed.
BACKFILLED, SHOWN = 100, 80
Expected = Callable[[], dict[str, str | None]]


class Playing(Protocol, AbstractAsyncContextManager[Any]):
    """A server, or what writes a file."""

    connections: int

    @property
    def is_over(self) -> bool:
        """Whether everything has happened."""


Play = tuple[Playing, Callable[[Settings], list[Source]], Expected]
"""A server, the sources that read it, and what must be on the topic at the end."""


def bluesky(world: World, faults: Faults, _: Path) -> Play:
    player = Jetstream(world, faults)
    player.keeps_alive = True
    return (
        player,
        lambda settings: [Bluesky(servers=[player.endpoint], backoff=FAST, silence=KEEP_ALIVE, rewind=1.0)],
        lambda: {post_id(n): text for n, text in world.final.items()},
    )


def x(world: World, faults: Faults, _: Path) -> Play:
    player = x_api.XApi(world, faults, repeated=BACKFILLED)
    player.keeps_alive = True

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


def mastodon(world: World, faults: Faults, _: Path) -> Play:
    player = mastodon_api.MastodonApi(world, faults, rate=SERVER_RATE)
    player.keeps_alive = True

    def sources(settings: Settings) -> list[Source]:
        stream = Mastodon(
            server=player.url, token=mastodon_api.TOKEN, backoff=FAST, silence=KEEP_ALIVE, rewind=1.0
        )
        sweep = Sweep(
            name="mastodon-deletions", key=f"{stream.key}/deletions", prefix=stream.prefix,
            kept=kept_on(settings, POSTS), check=stream.check, every=10.0, least=5.0, backoff=FAST,
            due=stream.missed,
        )  # fmt: skip
        return [stream, sweep]

    return player, sources, player.expected


def rss(world: World, faults: Faults, _: Path) -> Play:
    player = Feed(world, rate=FEED_RATE, shown=SHOWN, faults=faults)
    return (
        player,
        lambda settings: [Rss(url=player.address, backoff=FAST, every=0.02, patience=KEEP_ALIVE)],
        player.expected,
    )


def ndjson(world: World, faults: Faults, folder: Path) -> Play:
    faults.kinds = FILE_FAULTS
    player = LinesFile(world, faults, folder)
    return player, lambda settings: [Ndjson(path=player.file, poll=0.02, backoff=FAST)], player.expected


@dataclass(frozen=True, slots=True)
class Part:
    """How a protocol is played, and what its posts are like."""

    play: Callable[[World, Faults, Path], Play]
    posts: int = 4
    """For each fault."""
    deletes: bool = True
    delete_first: bool = False
    """Some deletions come before their post."""


PROTOCOLS = {
    "bluesky": Part(bluesky, delete_first=True),
    "x": Part(x),
    # What happens during an interruption has no fault of its own: the stream of Mastodon has no cursor.
    "mastodon": Part(mastodon, posts=14),
    "rss": Part(rss, posts=6, deletes=False),
    "ndjson": Part(ndjson),
}


async def fault_run(name: str, faults: int, seed: int, bootstrap: str) -> dict[str, Any]:
    """Runs one protocol with `faults` faults, on a broker that has the topics."""
    part, began = PROTOCOLS[name], time.monotonic()
    made = Faults(seed=seed + 1, count=faults, every=4, silence=SILENCE)
    world = World.made(seed, faults * part.posts, deletes=part.deletes, delete_first=part.delete_first)
    settings = Settings(broker=f"kafka://{bootstrap}", http_port=0)
    with tempfile.TemporaryDirectory() as folder:
        player, sources, expected = part.play(world, made, Path(folder))
        async with player, counting(settings) as found:
            intake = PostIntake.of(settings, everything=True)
            process = SourceProcess(sources(settings), intake, settings)
            await _read(process, player, partial(_settled, found, expected, player))
            await asyncio.sleep(0.5)
        seconds = round(time.monotonic() - began, 1)
        behind = await worked_off(settings, found, Path(folder))
        figures = found.compared(expected()) | behind.compared(expected(), world.deleted_marks)
    kinds = {kind: made.made[kind] for kind in sorted(made.made)}
    counts = {"faults": sum(kinds.values()), "kills": 0, "connections": player.connections}
    return counts | figures | {"seconds": seconds, "kinds": kinds}


async def _read(
    process: SourceProcess, player: Playing, settled: Callable[[asyncio.Task[None]], Awaitable[None]]
) -> None:
    """Runs the sources until it is settled, or RUN_SECONDS are over."""
    task = asyncio.create_task(process.run())
    try:
        async with asyncio.timeout(RUN_SECONDS):
            if isinstance(player, LinesFile):
                while not any(process.readiness().values()) and not task.done():  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
                player.begin()
            await settled(task)
    except TimeoutError:
        print(f"not complete within {RUN_SECONDS:.0f} s")
    process.stop()
    await task


async def _settled(found: Found, expected: Expected, player: Playing, task: asyncio.Task[None]) -> None:
    """Waits until the world is over and the topic has all of it, and still has it after the last repeats:
    after an interruption an edited post comes first as it was.
    """
    complete = 0
    while complete < SETTLED and not task.done():
        await asyncio.sleep(0.5)
        figures = found.compared(expected())
        missing = figures["lost"] + figures["deletions_missing"]
        complete = complete + 1 if player.is_over and not missing else 0
