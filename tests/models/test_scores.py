"""Scores of small cases counted by hand, and their bootstrap intervals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.scores import Counts, bootstrap, paired_bootstrap, ratio, span_counts


def test_span_counts_are_true_positives_predicted_and_gold_in_the_order_of_the_labels() -> None:
    predicted = [[(0, 1, "A"), (2, 3, "B"), (2, 3, "B"), (4, 5, "C")], []]
    gold = [[(0, 1, "A"), (2, 4, "B")], [(0, 9, "B")]]
    assert span_counts(predicted, gold, ["B", "A"]).tolist() == [[0, 1, 1, 1, 1, 1], [0, 0, 1, 0, 0, 0]]
    assert span_counts([], [], ["A"]).shape == (0, 3)


SHARE = ratio("share", "", (0, 1))


def rows(*values: list[float]) -> Counts:
    return np.array(values, dtype=np.float64)


def test_a_measure_scores_each_row_of_sums_independently() -> None:
    sums = rows([1, 4], [3, 4], [5, 0])
    assert SHARE.value(sums).tolist() == [0.25, 0.75, 0.0]
    assert ratio("a thousand", "", (0, 1), times=1000).of(sums) == 1000 * 9 / 8


def outcomes(*right: int) -> Counts:
    return rows(*([float(r), 1.0] for r in right))


def test_a_seed_determines_the_interval_which_contains_the_score() -> None:
    counts = outcomes(*[1, 1, 0] * 40)
    interval = bootstrap(counts, [SHARE])["share"]
    assert interval == bootstrap(counts, [SHARE])["share"]
    assert interval != bootstrap(counts, [SHARE], seed=2)["share"]
    assert interval.low < 2 / 3 < interval.high
    # 1.96 standard errors to each side: 0.084.
    assert interval.high - interval.low == pytest.approx(0.168, abs=0.03)


def test_resampling_in_chunks_does_not_change_the_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = outcomes(*[1, 0, 0] * 10)
    whole = bootstrap(counts, [SHARE], draws=100)
    monkeypatch.setattr("models.scores._CHUNK", 7 * len(counts))
    assert bootstrap(counts, [SHARE], draws=100) == whole


@settings(max_examples=25)
@given(st.lists(st.integers(0, 1), min_size=1, max_size=30), st.integers(0, 3))
def test_an_interval_is_within_the_range_of_the_records_scores(right: list[int], seed: int) -> None:
    interval = bootstrap(outcomes(*right), [SHARE], draws=50, seed=seed)["share"]
    assert min(right) <= interval.low <= interval.high <= max(right)


def test_a_paired_difference_is_significant_although_the_two_intervals_overlap() -> None:
    ours, theirs = outcomes(*[1, 1, 0, 0] * 20, 1, 1, 1, 1, 1, 1), outcomes(*[1, 1, 0, 0] * 20, *[0] * 6)
    paired = paired_bootstrap(ours, theirs, [SHARE])["share"]
    assert paired.difference == pytest.approx(6 / 86)
    assert 0 < paired.low < paired.difference < paired.high
    assert bootstrap(ours, [SHARE])["share"].low < bootstrap(theirs, [SHARE])["share"].high
    back = paired_bootstrap(theirs, ours, [SHARE])["share"]
    assert tuple(back) == pytest.approx((-paired.difference, -paired.high, -paired.low))


@settings(max_examples=25)
@given(st.lists(st.floats(0, 100), min_size=1, max_size=30))
def test_two_identical_systems_differ_by_exactly_zero(values: list[float]) -> None:
    counts = rows(*([v, 1] for v in values))
    assert tuple(paired_bootstrap(counts, counts.copy(), [SHARE], draws=50)["share"]) == (0, 0, 0)


def test_no_records_and_unequal_numbers_of_records_are_refused() -> None:
    with pytest.raises(ValueError, match="no record"):
        bootstrap(np.zeros((0, 2)), [SHARE])
    with pytest.raises(ValueError, match="2 records cannot be paired with 1"):
        paired_bootstrap(outcomes(1, 0), outcomes(1), [SHARE])
