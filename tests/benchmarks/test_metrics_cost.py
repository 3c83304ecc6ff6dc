from __future__ import annotations

import pytest

from benchmarks import metrics_cost
from benchmarks.metrics_cost import Segment, figures, one_run
from streams import metrics


def sent() -> float:
    return metrics.REGISTRY.get_sample_value("pv_records_total", {"stage": "ner", "outcome": "sent"}) or 0.0


def test_segments_without_metrics_count_nothing_and_those_with_them_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metrics_cost, "WARM_UP", 10)
    monkeypatch.setenv("PV_BATCH", "20")
    counted = {}
    for modes in ([True, True, True], [False, False, False]):
        before = sent()
        segments = one_run(100, modes)
        assert [one.on for one in segments] == modes
        assert all(one.wall > 0 and one.cpu > 0 for one in segments)
        counted[modes[0]] = sent() - before
    # The warm-up, and what is in work when metrics go on and off, is counted in both.
    assert counted[True] - counted[False] > 200


def test_the_cost_is_the_share_of_the_time_without_metrics() -> None:
    on = [Segment(True, wall, 2.0) for wall in (1.01, 1.5, 1.02)]
    found = figures([*on, *[Segment(False, 1.0, 2.0)] * 3], 1000)
    assert (found["cost_of_wall_time"], found["cost_of_median_wall_time"]) == (0.1767, 0.02)
    assert (found["cost_of_processor_time"], found["cost_of_median_processor_time"]) == (0, 0)
    assert found["records_per_second_without"] == 1000
