"""The parts of the benchmark of speed that need a Kafka run to their end, with few records and tiny
releases.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.speed import __main__ as speed
from benchmarks.speed import scaling
from benchmarks.speed.setup import QUICK
from tests.integration.kafka_server import LocalKafka

pytestmark = pytest.mark.kafka


@pytest.mark.slow
def test_a_quick_run_measures_pipeline_and_latency(
    kafka: LocalKafka, pinned: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PV_RELEASES", pinned)
    monkeypatch.setattr(speed, "own_kafka", lambda: nullcontext(kafka))
    monkeypatch.setattr(speed, "QUICK", replace(QUICK, seconds=2.0))
    found = dict(speed.measured(["brokers", "latency"], tmp_path, quick=True))
    assert list(found["brokers"]["rows"]) == ["embedded broker", "Apache Kafka"]
    assert all(row["records_per_second"] > 0 for row in found["brokers"]["rows"].values())
    assert len(found["latency"]["rows"]) == 2
    for row in found["latency"]["rows"].values():
        assert 0 < row["p50_seconds"] <= row["p99_seconds"] <= row["most_seconds"] < 60


@pytest.mark.slow
def test_threads_and_processes_are_measured_and_more_threads_predicted(
    kafka: LocalKafka, pinned: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PV_RELEASES", pinned)
    monkeypatch.setattr(speed, "own_kafka", lambda: nullcontext(kafka))
    monkeypatch.setattr(scaling, "processors", lambda: 2)
    ((_, found),) = speed.measured(["scaling"], tmp_path, quick=True)
    rows = found["rows"]
    assert list(rows) == [
        "1 threads, batch 64", "2 threads, batch 64", "2 threads, batch 16", "4 threads, predicted",
        "8 threads, predicted", "16 threads, predicted", "1 processes of 1 threads",
        "2 processes of 1 threads",
    ]  # fmt: skip
    assert all(row["records_per_second"] > 0 for row in rows.values())
    one, two = rows["1 threads, batch 64"], rows["2 processes of 1 threads"]
    assert 0 < one["lock_share"] < 1 and one["megabytes_a_worker"] > 100 < two["megabytes_a_worker"]
    share = one["lock_share"]
    law = 1 / (share + (1 - share) / 4)
    assert rows["4 threads, predicted"]["speed_to_one"] == pytest.approx(law, abs=0.02)
    assert found["broker"] == "Apache Kafka"
