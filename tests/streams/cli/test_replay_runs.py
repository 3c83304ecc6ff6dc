from __future__ import annotations

import asyncio

import pytest

from streams.broker.embedded import EmbeddedBroker
from streams.cli.replay import runs
from streams.records import Report
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
