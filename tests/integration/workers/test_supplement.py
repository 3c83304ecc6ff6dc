"""A decision on a relation or a code changes the next record of a running worker, and no record before it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from models.releases.store import bundled
from streams.agents.pipeline import stage_named
from streams.broker.embedded import EmbeddedBroker
from streams.cli.feed import arrivals
from streams.cli.ingest import Sender
from streams.cli.store.supplement import run
from streams.records import CodedReport, Report
from streams.rollout.announcing import roll_back
from streams.rollout.supplement import CODES, PAIRS, Kind, Supplements
from streams.settings import Settings
from streams.worker import Worker
from tests.streams.rollout.reviewing import WARFARIN, Desk

pytestmark = pytest.mark.slow
STAGES = [stage_named(name) for name in ("acronym", "ner", "relation", "normalization")]


def blamed(record: CodedReport) -> set[str]:
    """The drugs that are related to an effect."""
    return {record.mentions[relation.head].text for relation in record.relations}


def codes(record: CodedReport) -> set[str | None]:
    """The preferred terms of the events."""
    return {event.pt for event in record.events}


#: What is decided, what is looked at, the correction, and what is found before and after it.
CASES: dict[str, tuple[Kind, Callable[[CodedReport], set[Any]], dict[str, Any], set[str], set[str]]] = {
    "relation": (PAIRS, blamed, {"drugs": ("phenytoin",)}, {"warfarin", "phenytoin"}, {"phenytoin"}),
    "code": (CODES, codes, {"llt": "Drug eruption", "pt": "Drug eruption"}, {"Rash"}, {"Drug eruption"}),
}


@pytest.mark.parametrize("case", CASES)
async def test_a_worker_follows_a_decision_and_the_rollback_that_takes_it_back(
    tmp_path: Path, case: str
) -> None:
    kind, said, after, before, decided = CASES[case]
    base = bundled(kind.task).name
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
        command = asyncio.create_task(run([Supplements(settings, kind=kind)], stop, announce=True, every=0.5))
        found: list[tuple[str, set[str]]] = []
        async with Worker(STAGES, settings).running(), asyncio.timeout(150), Sender(settings) as sender:
            await sender.send("sentences", Report(id="first", text=WARFARIN))
            numbers = itertools.count()
            async for arrival in arrivals(settings):
                record = arrival.record
                if not isinstance(record, CodedReport):
                    continue
                found.append((record.releases[kind.task], said(record)))
                versions = list(dict.fromkeys(version for version, _ in found))
                if len(found) == 1:
                    await asyncio.to_thread(desk.decide, "r-warfarin", "correct", **after)
                elif len(versions) == 2 and found[-2][0] == base:
                    await roll_back(kind.task, base, settings)
                elif len(versions) == 2 and found[-1][0] == base:
                    break
                await sender.send("sentences", Report(id=str(next(numbers)), text=WARFARIN))
        assert not command.done()
        stop.set()
        await command
    assert all(own == (before if version == base else decided) for version, own in found)
