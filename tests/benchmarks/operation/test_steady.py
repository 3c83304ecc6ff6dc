"""What the benchmark of a steady load concludes from its samples."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.operation.steady import MISSING, Samples, verdict

RATE = 2.0


def figures(memory: list[float], lag: list[int], **more: int) -> dict[str, Any]:
    made = Samples(lag=lag, memory=[{"up": one, "source": 100.0} for one in memory])
    counts = {"published": 50, "records": 50, "lost": 0, "deletions_missing": 0, "other_keys": 0}
    counts |= {f"short_questions_{name}": 0 for name in MISSING}
    return {**counts, "dead_letters": 0, **made.figures(RATE), **more}


LEVEL = [300.0, *[600.0 + i % 3 for i in range(59)]]
LAGS = [3 + i % 5 for i in range(60)]


def test_what_only_grows_while_it_warms_up_is_level() -> None:
    found = figures(LEVEL, LAGS)
    assert set(verdict(found).values()) == {True}
    row = found["rows"]["up"]
    assert (row["MB first third"], row["MB last third"]) == (601.0, 601.0)
    assert abs(row["MB an hour"]) < 10


def test_the_slope_is_in_megabytes_an_hour() -> None:
    # One more in each sample of five seconds.
    row = figures([600.0 + i for i in range(60)], LAGS)["rows"]["up"]
    assert row["MB an hour"] == pytest.approx(720.0)
    assert row["growth of the line"] == pytest.approx(53 / 614.5, abs=0.001)


@pytest.mark.parametrize(
    ("changed", "false"),
    [
        ({"memory": [600.0 + 2 * i for i in range(60)]}, "memory_is_flat"),
        ({"memory": [600.0] * 45 + [650.0] * 15}, "memory_is_flat"),
        ({"lag": [i for i in range(60)]}, "lag_is_bounded"),
        ({"lag": [80] * 60}, "lag_is_bounded"),
        ({"lost": 1}, "every_record_is_accounted_for"),
        ({"dead_letters": 1}, "every_record_is_accounted_for"),
        ({"records": 49}, "every_record_is_accounted_for"),
    ],
)
def test_each_fault_is_told_and_fails_the_run(changed: dict[str, Any], false: str) -> None:
    found = verdict(figures(**{"memory": LEVEL, "lag": LAGS, **changed}))
    assert {name for name, holds in found.items() if not holds} == {"passed", false}
