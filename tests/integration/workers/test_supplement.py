"""A decision on a relation changes the next record of a running worker, and no record before it."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import pytest

from models.releases.store import bundled
from streams.agents.pipeline import stage_named
from streams.broker.embedded import EmbeddedBroker
from streams.cli.feed import arrivals
from streams.cli.ingest import Sender
from streams.cli.store.supplement import run
from streams.records import Report, TaggedReport
from streams.rollout.announcing import roll_back
from streams.rollout.supplement import Supplements
from streams.settings import Settings
from streams.worker import Worker
from tests.streams.rollout.reviewing import WARFARIN, Desk

pytestmark = pytest.mark.slow
RIGHT, WRONG = "phenytoin", "warfarin"
STAGES = [stage_named(name) for name in ("acronym", "relation")]


def blamed(record: TaggedReport) -> set[str]:
    """The drugs that are related to an effect."""
    return {record.mentions[relation.head].text for relation in record.relations}


async def test_a_worker_follows_a_decision_and_the_rollback_that_takes_it_back(tmp_path: Path) -> None:
    base = bundled("relation").name
    with EmbeddedBroker() as broker:
        settings = Settings(
            broker=f"kafka://{broker.bootstrap}",
            http_port=0,
            store=str(tmp_path / "store"),
            database=str(tmp_path / "events.duckdb"),
            dtype="float32",
        )
        desk = Desk(settings)
        desk.fill()
        stop = asyncio.Event()
        command = asyncio.create_task(run([Supplements(settings)], stop, announce=True, every=0.5))
        found: list[tuple[str, set[str]]] = []
        async with Worker(STAGES, settings).running(), asyncio.timeout(150), Sender(settings) as sender:
            await sender.send("sentences", Report(id="first", text=WARFARIN))
            numbers = itertools.count()
            async for arrival in arrivals(settings):
                record = arrival.record
                if not isinstance(record, TaggedReport) or "relation" not in record.releases:
                    continue
                found.append((record.releases["relation"], blamed(record)))
                versions = list(dict.fromkeys(version for version, _ in found))
                if len(found) == 1:
                    await asyncio.to_thread(desk.decide, "r-warfarin", "correct", drugs=(RIGHT,))
                elif len(versions) == 2 and found[-2][0] == base:
                    await roll_back("relation", base, settings)
                elif len(versions) == 2 and found[-1][0] == base:
                    break
                await sender.send("sentences", Report(id=str(next(numbers)), text=WARFARIN))
        assert not command.done()
        stop.set()
        await command
    assert all(own == ({RIGHT, WRONG} if version == base else {RIGHT}) for version, own in found)
