"""The demo over live posts: from a local Jetstream server through all stages."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from tests.integration import processes
from tests.streams.sources.players.jetstream import Jetstream
from tests.streams.sources.players.world import World


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
