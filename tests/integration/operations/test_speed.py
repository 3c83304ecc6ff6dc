"""The parts of the benchmark of speed that need a Kafka run to their end, with few records."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.speed.__main__ import measured

pytestmark = pytest.mark.kafka


@pytest.mark.slow
def test_a_quick_run_measures_pipeline_latency_and_framework(tmp_path: Path) -> None:
    found = dict(measured(["brokers", "latency", "framework"], tmp_path, quick=True))
    if reasons := [figures["left_out"] for figures in found.values() if "left_out" in figures]:
        pytest.skip(reasons[0])
    assert list(found["brokers"]["rows"]) == ["embedded broker", "Apache Kafka"]
    assert all(row["records_per_second"] > 0 for row in found["brokers"]["rows"].values())
    for row in found["latency"]["rows"].values():
        assert 0 < row["p50_seconds"] <= row["p99_seconds"] <= row["most_seconds"] < 60
    framework = found["framework"]["rows"]
    assert framework["stage"]["cpu_microseconds_a_record"] > 0
    assert framework["bare, dictionaries"]["by_cpu"] < 1
