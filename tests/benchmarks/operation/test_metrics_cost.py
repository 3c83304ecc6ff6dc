from __future__ import annotations

import pytest

from benchmarks.operation import metrics_cost
from benchmarks.operation.metrics_cost import Segment, figures, one_run, replayed
from streams import metrics


def sent() -> float:
    return metrics.REGISTRY.get_sample_value("pv_records_total", {"stage": "ner", "outcome": "sent"}) or 0.0


@pytest.mark.slow
def test_segments_without_metrics_count_nothing_and_those_with_them_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metrics_cost, "WARM_UP", 10)
    monkeypatch.setenv("PV_BATCH", "20")
    counted = {}
    for modes in ([True, True, True], [False, False, False]):
        before = sent()
        meter = one_run(400, modes)
        assert [one.on for one in meter.segments] == modes
        assert all(one.cpu > 0 for one in meter.segments)
        counted[modes[0]] = sent() - before
        observed = [values for method, values in meter.calls if method.__name__ == "observe"]
        # Of 20 batches all but those that were in work when the metrics went on or off: four, by two workers.
        assert len(observed) > 200, "the latency of each record"
        assert meter.scrape_cpu > 0
    # The warm-up, and what is in work when metrics go on and off, is counted in both.
    assert counted[True] - counted[False] > 800


def test_the_share_of_the_metrics_is_that_of_their_calls() -> None:
    calls = [(metrics.RECORDS.labels, ("ner", "sent"))] * 1000
    assert 0 < replayed(calls) < 0.1
    turns = [Segment(on, cpu) for on, cpu in ((True, 1.0), (False, 0.5), (False, 1.5), (True, 1.1))]
    found = figures(turns * 2, 1000, calls, 0.03)
    assert (found["on_against_off"], found["on_against_off_quartiles"]) == (0.05, "0.0500 to 0.0500")
    assert (found["calls_a_record"], found["share_of_scrapes_every_15_s"]) == (1, 0.002)
    assert found["share_of_metrics"] == pytest.approx(
        found["microseconds_of_metrics_a_record"] / 1050, abs=1e-4
    )
    assert found["microseconds_of_processor_a_record"] == 1050
