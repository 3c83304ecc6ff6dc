"""The simulation of signals: which weeks count, and by how many they are divided."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from benchmarks.signals import simulation
from benchmarks.signals.simulation import (
    DRUGS,
    END,
    MONTH,
    ONSET,
    PLANTED,
    RISKS,
    TERMS,
    Errors,
    rows_of,
    simulated,
)

Rows = Callable[[range], dict[str, Any]]
#: Pairs that are not planted.
OTHERS = DRUGS * TERMS - PLANTED * len(RISKS)


@pytest.fixture
def met_from(monkeypatch: pytest.MonkeyPatch) -> Rows:
    """Lets one criterion be met in the weeks of a range alone, by all pairs."""

    def install(weeks: range) -> dict[str, Any]:
        def flags(seen: Any, prior: Any) -> tuple[dict[str, Any], Any]:
            met = np.full(seen.shape[1:], len(seen) - 1 in weeks)
            return {"criterion": met}, prior

        monkeypatch.setattr(simulation, "flags", flags)
        return rows_of(1, Errors(), "label")["criterion, label"]

    return install


@pytest.mark.parametrize("weeks", [range(END), range(3, 5), range(ONSET + 2, END), range(END - 1, END)])
def test_false_signals_are_divided_by_all_weeks_in_which_they_are_counted(
    met_from: Rows, weeks: range
) -> None:
    assert met_from(weeks)["false a month"] == round(OTHERS / (END / MONTH), 2)


def test_a_pair_that_is_met_before_the_onset_alone_is_not_found(met_from: Rows) -> None:
    row = met_from(range(3, ONSET))
    assert all(row[f"found, risk {risk:g}"] == 0 for risk in RISKS)
    assert all(row[f"weeks, risk {risk:g}"] is None for risk in RISKS)


@pytest.mark.parametrize("after", [0, 1, 7])
def test_weeks_are_counted_from_the_onset(met_from: Rows, after: int) -> None:
    row = met_from(range(ONSET + after, END))
    assert all(row[f"found, risk {risk:g}"] == 1 for risk in RISKS)
    assert all(row[f"weeks, risk {risk:g}"] == after for risk in RISKS)


def test_every_criterion_can_be_looked_at_after_the_first_week() -> None:
    weeks, _ = simulated(np.random.default_rng(0), Errors())
    met, prior = simulation.flags(weeks[:1], None)
    assert {flag.shape for flag in met.values()} == {weeks.shape[1:]}
    assert prior is not None
