from __future__ import annotations

import asyncio

import pytest

from streams.broker.embedded import EmbeddedBroker
from streams.cli.replay import runs
from streams.cli.terminal import read_settings
from streams.records import Report
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
