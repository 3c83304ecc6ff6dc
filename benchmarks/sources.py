"""Is anything of a live source lost when its server misbehaves and when its process is killed, and is
everything gone that was deleted?

Local servers play the protocols, on an Apache Kafka of the benchmark's own. In the first parts each makes
random faults: it cuts the connection, also in the middle of a message, sends garbage, 2 MB posts, wrong
times, the same twice or in another order, falls silent, or answers 429 and 503. A file is replaced, too, and
has lines that are half written. In the last part a process with five sources is killed again and again.

At the end the input topic must have the last version of each post, a tombstone for each deletion, and no
other key. Then all stages, with stub models, and the store work it off: the last record of a deleted post on
`events` must be a tombstone, and nothing of it may be in the tables of the store, nor its text in the file.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Protocol

import orjson
import typer

from benchmarks.machine import print_and_write, provenance
from benchmarks.sources_behind import worked_off
from benchmarks.sources_found import Found, counting
from benchmarks.sources_kills import kill_run
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
from tests.integration import processes
from tests.integration.kafka_server import own_kafka
from tests.streams.sources.kept import FAST
from tests.streams.sources.players import mastodon_api, x_api
from tests.streams.sources.players.faults import Faults
from tests.streams.sources.players.feeds import Feed
from tests.streams.sources.players.jetstream import Jetstream, post_id
from tests.streams.sources.players.lines import FILE_FAULTS, LinesFile
from tests.streams.sources.players.world import World

#: Seconds that a run may take.
RUN_SECONDS = 900.0
#: Half seconds for which the topic must stay complete.
SETTLED = 8
#: Keep-alive of the sources, and the silence of the servers, in seconds. The times of the protocols are
#: scaled down, so that a thousand faults take minutes.
KEEP_ALIVE, SILENCE = 0.4, 0.9
#: Happenings a second on Mastodon, where those of an interruption have no faults, and in the feed.
MASTODON_RATE, FEED_RATE = 300.0, 100.0
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
    player = mastodon_api.MastodonApi(world, faults, rate=MASTODON_RATE)
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
    "mastodon": Part(mastodon, posts=12),
    "rss": Part(rss, posts=6, deletes=False),
    "ndjson": Part(ndjson),
}
KILLED = "all five, killed"
PARTS = (*PROTOCOLS, KILLED)
#: Figures that must be 0.
ERRORS = (
    "lost", "deletions_missing", "other_keys", "events_lost", "events_deletions_missing", "store_lost",
    "store_rows_of_deleted", "store_texts_of_deleted", "file_texts_of_deleted",
)  # fmt: skip


async def fault_run(name: str, faults: int, seed: int, bootstrap: str) -> dict[str, Any]:
    """One protocol through so many faults, on a broker that has the topics."""
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


def measured(part: str, faults: int, kills: int, seed: int) -> dict[str, Any]:
    """The figures of one part, with the commit that they were measured at. An embedded broker would drop what
    is above some MB before the end.
    """
    with own_kafka() as kafka:
        processes.create_topics(Settings(broker=f"kafka://{kafka.bootstrap}"))
        if part == KILLED:
            run = kill_run(kills, seed, kafka.bootstrap)
        else:
            run = fault_run(part, faults, seed, kafka.bootstrap)
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
    errors = {name: sum(row[name] for row in rows.values()) for name in ERRORS}
    print_and_write(errors | provenance("sources") | {"rows": rows}, json)
    raise typer.Exit(1 if any(errors.values()) else 0)


if __name__ == "__main__":
    typer.run(main)
