"""The demo over live posts: from a local Jetstream server through all stages."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from models.releases.manifest import Release
from streams.cli.demo.run import Demo
from streams.cli.feed import Arrival, Tally
from streams.settings import Settings
from streams.sources.protocols.bluesky import Bluesky
from tests.integration import processes
from tests.streams.sources.kept import FAST
from tests.streams.sources.pass_all import PassAll
from tests.streams.sources.players.jetstream import Jetstream, post_id
from tests.streams.sources.players.world import World


async def test_live_posts_come_out_as_events_until_the_limit(tiny: dict[str, Release]) -> None:
    seen: list[Arrival] = []

    def keep(arrival: Arrival, _tally: Tally) -> None:
        seen.append(arrival)

    world = World.made(seed=3, posts=200)
    settings = Settings(http_port=0, releases={task: release.path for task, release in tiny.items()})
    async with Jetstream(world, rate=300) as server:
        live = ([Bluesky(servers=[server.endpoint], backoff=FAST)], PassAll())
        outcome = await Demo({}, settings, live=live, limit=30).run(on_arrival=keep)
    assert outcome.ok
    assert outcome.tally.inputs == {"posts": 30}
    assert {a.key for a in seen if a.topic == "events"} <= {post_id(n) for n in world.final}
    assert outcome.tally.outputs["events"] >= 30


async def test_the_command_reads_the_named_server_until_the_limit(pinned: str, tmp_path: Path) -> None:
    world = World.made(seed=4, posts=300, about="zoloft")
    report = tmp_path / "report.json"
    env = processes.environment("", 0, PV_BROKER="embedded", PV_RELEASES=pinned, PV_THREADS="1")
    async with Jetstream(world, rate=300) as server:
        arguments = ("demo", "--source", "bluesky", "--server", server.endpoint)
        options = ("--limit", "20", "--report", str(report))
        answer = await asyncio.to_thread(processes.forked_command, *arguments, *options, env=env)
    assert answer.returncode == 0, answer.stderr
    figures = json.loads(report.read_bytes())
    assert figures["inputs"] == {"posts": 20}
    assert figures["outputs"]["events"] >= 20
    assert (figures["missing"], figures["duplicated"], figures["dead"]) == ([], [], [])
    assert "zoloft" in answer.stdout
