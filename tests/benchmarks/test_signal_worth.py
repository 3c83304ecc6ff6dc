"""The simulated streams of signals: what a campaign does, and what merging its copies takes away."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import signal_worth


def test_a_campaign_makes_a_signal_of_nothing_unless_its_copies_are_merged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    changes = {"DRUGS": 12, "TERMS": 15, "REPORTS": 300, "END": 20, "PLANTED": 2, "PAIRS": 4, "KNOWN": 1.0}
    for name, value in changes.items():
        monkeypatch.setattr(signal_worth, name, value)
    stream = signal_worth.simulated(np.random.default_rng(1), "campaigns", 1.0, 1.0)
    assert len(stream.planted) == 6 and len(stream.misleading) == 4
    assert stream.every.sum() > stream.merged.sum() + 4 * signal_worth.COPIES
    rows = {}
    for name, weeks in (("every", stream.every), ("merged", stream.merged)):
        met = signal_worth.weeks_met(weeks)
        rows[name] = signal_worth.row_of([stream], [met["ic025"]])
        rows[name]["auc"] = signal_worth.areas(weeks, stream.planted)["ic025"]
    assert rows["every"]["misled"] == 1.0 > rows["merged"]["misled"]
    assert 0.5 < rows["every"]["auc"] < rows["merged"]["auc"] < 1
    for row in rows.values():
        assert row["found, risk 8"] == 1.0 and row["weeks, risk 8"] < 8
