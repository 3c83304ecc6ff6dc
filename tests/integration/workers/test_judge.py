"""A worker takes an announced judge while it runs, and its records say so."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import orjson

from models.releases.store import bundled
from models.types import JUDGE
from streams.agents import ner, second_reading
from streams.broker.embedded import EmbeddedBroker
from streams.cli.feed import arrivals
from streams.cli.ingest import Sender
from streams.records import Report
from streams.rollout import announcements
from streams.settings import Settings
from streams.stage import Stage
from streams.topics import MENTIONS, POSTS
from streams.worker import Worker
from tests.streams.rollout.reloading import announcement
from tests.tiny_releases import tiny_release

STAGE = Stage("ner", POSTS, MENTIONS, ner.predict, judged=second_reading.judged)


async def test_a_judge_is_taken_without_a_restart(pinned: str, tiny_mpnet: str, tmp_path: Path) -> None:
    version = tiny_release(JUDGE, tiny_mpnet, tmp_path).version
    with EmbeddedBroker() as broker:
        settings = Settings(
            broker=f"kafka://{broker.bootstrap}",
            http_port=0,
            store=str(tmp_path),
            judge="auto",
            releases=orjson.loads(pinned),
        )
        worker = Worker((STAGE,), settings)
        found: list[dict[str, str]] = []
        async with worker.running(), asyncio.timeout(120), Sender(settings) as sender:
            assert worker.readiness().keys() == {"ner"}
            await sender.send("posts", Report(id="first", text="a rash"))
            numbers = itertools.count()
            async for arrival in arrivals(settings):
                found.append(arrival.record.releases)
                if found[-1].get(JUDGE) == version:
                    break
                if len(found) == 1:
                    await announcements.send(settings, JUDGE, announcement(version, task=JUDGE))
                await sender.send("posts", Report(id=str(next(numbers)), text="a rash"))
            generation = arrival.record.generations[JUDGE]
        # The bundled judge is live where its base is installed.
        assert JUDGE not in found[0] or found[0][JUDGE] == bundled(JUDGE).name
        assert found[-1][JUDGE] == version
        assert generation == 1
        assert worker.releases()[JUDGE]["version"] == version
