"""Fitting a linear ranker."""

from __future__ import annotations

import pytest

from training.summarization.extraction.fit import Group, fit


def test_the_feature_that_tells_the_better_candidate_gets_the_weight() -> None:
    groups = [Group([[1, 7, i], [0, 7, 1 - i]], [1.0, 0.0]) for i in (0, 1, 0, 1)]
    weights = fit(groups, ("good", "constant", "noise"), temperature=0.1)
    assert weights["good"] > 1
    assert weights["constant"] == 0
    assert abs(weights["noise"]) < 0.01
    others = [Group([[1, 2], [0, 1], [3, 1]], [0.3, 0.1, 0.9])]
    assert fit(others, ("a", "b"), 0.2) == fit(others, ("a", "b"), 0.2)
    equal = fit([Group([[1], [0]], [0.5, 0.5])], ("a",), 0.1)
    assert equal["a"] == pytest.approx(0, abs=1e-6)
    with pytest.raises(ValueError, match="two candidates"):
        fit([Group([[1.0]], [1.0])], ("a",), 0.1)
