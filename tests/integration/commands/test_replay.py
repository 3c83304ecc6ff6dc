"""Replays on an embedded broker, which does not find records by time."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
import typer

from streams.broker.embedded import EmbeddedBroker
from streams.cli.replay import runs
from streams.cli.replay.runs import Range, run_replays
from streams.settings import Settings


@pytest.mark.parametrize("bounds", [("2026-03-01T00:00:00Z", "end"), ("0", "2026-03-01")])
async def test_a_time_is_refused_where_it_would_give_no_record(
    bounds: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with EmbeddedBroker() as broker:
        monkeypatch.setenv("PV_BROKER", f"kafka://{broker.bootstrap}")
        with pytest.raises(typer.BadParameter, match="finds no records by time"):
            await run_replays(Range("posts", *bounds), {}, {}, None)


async def test_a_replay_that_is_interrupted_while_a_model_loads_does_not_load_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, may_end, loaded = asyncio.Event(), threading.Event(), list[str]()
    loop = asyncio.get_running_loop()

    def load(task: str, name: str | Path | None, settings: Settings) -> None:
        loaded.append(task)
        loop.call_soon_threadsafe(begun.set)
        may_end.wait(10)

    monkeypatch.setattr(runs, "load_release", load)
    with EmbeddedBroker() as broker:
        monkeypatch.setenv("PV_BROKER", f"kafka://{broker.bootstrap}")
        replay = asyncio.create_task(run_replays(Range("posts", "beginning", "end"), {}, {}, None))
        await begun.wait()
        # What asyncio does at SIGINT.
        replay.cancel()
        with pytest.raises(asyncio.CancelledError):
            await replay
        may_end.set()
    assert loaded == ["ner"]
