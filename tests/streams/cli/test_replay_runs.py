from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
import typer

from streams.broker.embedded import EmbeddedBroker
from streams.cli import replay_runs as runs
from streams.cli.replay_runs import Range, run_replays
from streams.cli.terminal import read_settings
from streams.records import Report
from streams.settings import Settings
from streams.topics import POSTS, TopicsError, create
from tests.integration.processes import read_all


async def test_a_replay_sends_an_output_as_large_as_a_worker_does(monkeypatch: pytest.MonkeyPatch) -> None:
    large = b"x" * 1_500_000
    monkeypatch.setattr(runs, "encode", lambda record: large)
    monkeypatch.setenv("PV_MAX_OUTPUT_BYTES", "2000000")
    with EmbeddedBroker() as broker:
        monkeypatch.setenv("PV_BROKER", f"kafka://{broker.bootstrap}")
        await runs.send_to("mine", [Report(id="a", text="awake")])
        found = await asyncio.to_thread(read_all, broker.bootstrap, "mine")
    assert [m.value for m in found] == [large]


@pytest.mark.parametrize(("start", "stop"), [("20260301", "end"), ("0", "20260301")])
async def test_an_offset_behind_all_records_that_is_a_date_without_hyphens_is_refused(
    start: str, stop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with EmbeddedBroker() as broker:
        monkeypatch.setenv("PV_BROKER", f"kafka://{broker.bootstrap}")
        await create(read_settings())
        with pytest.raises(TopicsError, match=r"^posts has no offset 20260301; if it is a date, write 2026-"):
            await runs._read(runs.Range("posts", start, stop), POSTS, read_settings())
        assert await runs._read(runs.Range("posts", "20261301", "99999999"), POSTS, read_settings()) == []


@pytest.mark.parametrize("bounds", [("2026-03-01T00:00:00Z", "end"), ("0", "2026-03-01")])
async def test_a_time_is_refused_where_it_would_give_no_record(
    bounds: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with EmbeddedBroker() as broker:
        monkeypatch.setenv("PV_BROKER", f"kafka://{broker.bootstrap}")
        with pytest.raises(typer.BadParameter, match="finds no records by time"):
            await run_replays(Range("posts", *bounds), {}, {}, None)


async def test_a_replay_interrupted_in_a_load_loads_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
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
