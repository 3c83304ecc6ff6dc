"""Two minutes of a steady load from live feeds through all stages, as `benchmarks.operation.steady` does."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.operation.steady import Plan, run
from tests.integration.kafka_server import LocalKafka

pytestmark = pytest.mark.kafka


async def test_under_a_steady_load_every_report_comes_out_and_memory_and_lag_stay_level(
    kafka: LocalKafka, tmp_path: Path
) -> None:
    figures = await run(kafka, tmp_path, Plan(minutes=2.0, capacity_seconds=5.0))
    assert figures["published"] > 1000
    assert figures["deletions"] > 100
    assert figures["every_record_is_accounted_for"], figures
    assert figures["lag_is_bounded"], figures
    assert all(row["growth"] < 0.2 for row in figures["rows"].values()), figures["rows"]
