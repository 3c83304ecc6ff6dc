from __future__ import annotations

import pytest

from benchmarks import metrics_cost
from benchmarks.metrics_cost import figures, one_run, without_metrics
from streams import metrics


def sent() -> float:
    return metrics.REGISTRY.get_sample_value("pv_records_total", {"stage": "ner", "outcome": "sent"}) or 0.0


async def test_a_run_without_metrics_counts_nothing_and_one_with_them_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metrics_cost, "WARM_UP", 10)
    before = sent()
    with without_metrics():
        wall, cpu = await one_run(40, scraped=False)
    assert wall > 0 and cpu > 0
    assert sent() == before
    await one_run(40, scraped=True)
    assert sent() == before + 50


def test_the_cost_is_the_median_of_the_pairs() -> None:
    pairs = [{"on": (on, 2.0), "off": (1.0, 2.0)} for on in (1.01, 1.5, 1.02)]
    found = figures(pairs, 1000)
    assert (found["cost_of_wall_time"], found["cost_of_processor_time"]) == (0.02, 0)
    assert (found["cost_of_wall_time_lowest"], found["cost_of_wall_time_highest"]) == (0.01, 0.5)
    assert found["records_per_second_without"] == 1000
