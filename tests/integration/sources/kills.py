"""Kills a process with five sources again and again, while local servers play them."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from streams.settings import Settings
from tests.integration import processes
from tests.integration.sources.behind import worked_off
from tests.integration.sources.found import Found, counting
from tests.streams.sources.players import feeds, mastodon_api, x_api
from tests.streams.sources.players.faults import Fault, Faults
from tests.streams.sources.players.jetstream import Jetstream, post_id
from tests.streams.sources.players.lines import id_of, line
from tests.streams.sources.players.server import Player, StreamPlayer
from tests.streams.sources.players.world import World

#: Seconds that a start of the process, and the rest after the last kill, may take.
START_SECONDS, END_SECONDS = 300.0, 600.0
#: Faults besides the kills. The process has the protocols' real times, so that silence would take minutes.
KINDS: tuple[Fault, ...] = ("cut", "mid_line", "malformed", "duplicate", "out_of_order", "large")
#: Happenings of each server between two kills.
BETWEEN = 60
RATE = 60.0


class Site:
    """Four servers and a file, and what must be on the topic at the end."""

    def __init__(self, kills: int, seed: int, folder: Path) -> None:
        posts = kills * BETWEEN

        def world(n: int, about: str, **options: bool) -> World:
            return World.made(seed + n, posts, about=about, **options)

        def faults(n: int) -> Faults:
            return Faults(seed=seed + n, count=kills, every=BETWEEN, kinds=KINDS)

        self.jetstream = Jetstream(world(1, "post"), faults(1), rate=RATE)
        self.x = x_api.XApi(world(2, "tweet", delete_first=False), faults(2), rate=RATE)
        self.mastodon = mastodon_api.MastodonApi(world(3, "toot", delete_first=False), faults(3), rate=RATE)
        # The process may be killed several times before it has sent what a feed shows, and what a feed shows
        # no more is lost: this one shows everything.
        self.feed = feeds.Feed(world(4, "entry", deletes=False), rate=RATE, shown=posts)
        self.lines = world(5, "line", delete_first=False)
        self.file = folder / "posts.jsonl"
        self.file.touch()

    @property
    def streams(self) -> list[StreamPlayer]:
        return [self.jetstream, self.x, self.mastodon]

    @property
    def players(self) -> list[Player]:
        return [*self.streams, self.feed]

    def expected(self) -> dict[str, str | None]:
        return (
            {post_id(n): text for n, text in self.jetstream.world.final.items()}
            | {f"x:{x_api.tweet_id(n)}": text for n, text in self.x.world.final.items()}
            | self.mastodon.expected()
            | self.feed.expected()
            | {id_of(n): text for n, text in self.lines.final.items()}
        )

    def deleted_marks(self) -> set[str]:
        """What the texts of all deleted posts begin with."""
        worlds = [self.lines, *(player.world for player in self.players)]
        return set[str]().union(*(world.deleted_marks for world in worlds))

    def arguments(self, tokens: Path) -> list[str]:
        """The command, with as frequent sweeps as may be. No post names a drug, so all must pass."""
        return [
            "source", "bluesky", "x", "mastodon", "rss", "ndjson", "--all",
            "--bluesky-server", self.jetstream.endpoint,
            "--x-server", self.x.url, "--x-backfill", "5", "--mastodon-server", self.mastodon.url,
            "--sweep", "0.1", "--feed", self.feed.address, "--every", "1", "--path", str(self.file),
            "--x-rules", str(tokens / "rules"),
        ]  # fmt: skip

    async def write_lines(self) -> None:
        """Lets the file grow as the first server publishes."""
        for i, happening in enumerate(self.lines.happenings):
            while i >= self.jetstream.furthest and not self.jetstream.world.is_over:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            with self.file.open("ab") as file:
                file.write(line(happening))


async def kill_run(kills: int, seed: int, bootstrap: str) -> dict[str, Any]:
    """Figures of a run with `kills` kills, as those of the faults, on a broker that has the topics."""
    began = time.monotonic()
    settings = Settings(broker=f"kafka://{bootstrap}", http_port=0)
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        site = Site(kills, seed, folder)
        for stream in site.streams:
            stream.keeps_alive = True
        for player in site.players:
            await stack.enter_async_context(player)
        async with counting(settings) as found:
            writer = asyncio.create_task(site.write_lines())
            arguments = site.arguments(folder)
            (folder / "rules").write_text("drug\n")
            for number in range(1, kills + 2):
                until = (
                    number * len(site.jetstream.world.happenings) // (kills + 1) if number <= kills else None
                )
                await _run_once(site, found, arguments, _environment(bootstrap, folder), until)
            await writer
            await asyncio.sleep(0.5)
        seconds = round(time.monotonic() - began, 1)
        behind = await worked_off(settings, found, folder)
        expected = site.expected()
        figures = found.compared(expected) | behind.compared(expected, site.deleted_marks())
    made = sum(sum(p.faults.made.values()) for p in site.streams)
    counts = {"faults": made, "kills": kills, "connections": sum(p.connections for p in site.players)}
    return counts | figures | {"seconds": seconds}


async def _run_once(
    site: Site, found: Found, arguments: list[str], env: dict[str, str], until: int | None
) -> None:
    """Runs the process until so many posts are sent and kills it then, or with None waits for all of them."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "streams", *arguments, env=env, cwd=processes.ROOT,
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    errors = asyncio.create_task(process.communicate())
    try:
        async with asyncio.timeout(END_SECONDS if until is None else START_SECONDS):
            while until is not None and site.jetstream.furthest < until:
                await asyncio.sleep(0.02)
                assert process.returncode is None, "the process has ended by itself"
            while until is None and not _is_complete(site, found):  # noqa: ASYNC110
                await asyncio.sleep(0.5)
    except TimeoutError:
        print(f"not complete in time, until {until}")
    finally:
        if process.returncode is None:
            process.kill()
        _, log = await errors
        if process.returncode != -9:
            print(log.decode(errors="replace")[-2000:])


def _is_complete(site: Site, found: Found) -> bool:
    figures = found.compared(site.expected())
    return all(p.world.is_over for p in site.players) and figures["lost"] + figures["deletions_missing"] == 0


def _environment(bootstrap: str, folder: Path) -> dict[str, str]:
    files = {}
    for source, token in (("x", x_api.TOKEN), ("mastodon", mastodon_api.TOKEN)):
        path = folder / source
        path.write_text(token)
        files[f"PV_{source.upper()}_TOKEN_FILE"] = str(path)
    return processes.environment(bootstrap, 0, **files)
