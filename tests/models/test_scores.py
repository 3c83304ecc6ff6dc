"""Scores counted by hand on small cases, and what the bootstrap says of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.scores import (
    F1,
    Counts,
    bootstrap,
    f1,
    macro_f1,
    micro_f1,
    paired_bootstrap,
    ratio,
    span_counts,
    strict_spans,
)

SPANS = st.lists(
    st.sets(st.tuples(st.integers(0, 4), st.integers(5, 9), st.sampled_from(["A", "B", "C"])), max_size=5),
    min_size=3,
    max_size=3,
)
Spans = list[tuple[int, int, str]]


@pytest.mark.parametrize(
    ("counts", "wanted"),
    [
        ((0, 0, 0), F1(0.0, 0.0, 0.0)),
        ((0, 5, 0), F1(0.0, 0.0, 0.0)),
        ((0, 0, 5), F1(0.0, 0.0, 0.0)),
        ((0, 5, 5), F1(0.0, 0.0, 0.0)),
        ((5, 5, 5), F1(1.0, 1.0, 1.0)),
        ((1, 2, 1), F1(0.5, 1.0, 2 / 3)),
        ((3, 4, 6), F1(0.75, 0.5, 0.6)),
    ],
)
def test_f1_is_the_harmonic_mean_and_zero_where_nothing_is_right(
    counts: tuple[int, int, int], wanted: F1
) -> None:
    assert tuple(f1(*counts)) == pytest.approx(tuple(wanted))


@pytest.mark.parametrize(
    ("predicted", "gold", "labels", "micro", "macro"),
    [
        pytest.param([[(0, 3, "A")]], [[(0, 3, "A")]], ["A"], 1.0, 1.0, id="right"),
        pytest.param([[(0, 4, "A")]], [[(0, 3, "A")]], ["A"], 0.0, 0.0, id="another boundary"),
        pytest.param([[(0, 3, "B")]], [[(0, 3, "A")]], ["A", "B"], 0.0, 0.0, id="another label"),
        pytest.param([[(0, 3, "A")] * 3], [[(0, 3, "A")]], ["A"], 1.0, 1.0, id="predicted thrice"),
        pytest.param([[(0, 3, "A")]], [[(0, 3, "A")] * 2], ["A"], 1.0, 1.0, id="gold twice"),
        pytest.param(
            [[(0, 3, "A"), (5, 6, "B")]], [[(0, 3, "A")]], ["A"], 1.0, 1.0, id="prediction left out"
        ),
        pytest.param([[(0, 3, "A")]], [[(0, 3, "A"), (5, 6, "B")]], ["A"], 1.0, 1.0, id="gold left out"),
        pytest.param(
            [[(0, 3, "A")], []], [[], [(0, 3, "A")]], ["A"], 0.0, 0.0, id="right span of another text"
        ),
        # A: 2 of 2 right, B: 0 of 1 predicted and 1 gold.
        pytest.param(
            [[(0, 1, "A"), (2, 3, "A"), (4, 5, "B")]],
            [[(0, 1, "A"), (2, 3, "A"), (4, 6, "B")]],
            ["A", "B"],
            2 / 3,
            0.5,
            id="micro and macro",
        ),
        pytest.param([[(0, 1, "A")]], [[(0, 1, "A")]], ["A", "B"], 1.0, 0.5, id="label that never occurs"),
        pytest.param([[]], [[]], ["A"], 0.0, 0.0, id="nothing"),
        pytest.param([], [], ["A"], 0.0, 0.0, id="no texts"),
    ],
)
def test_strict_spans_count_exact_boundaries_and_labels_once_a_text(
    predicted: list[Spans], gold: list[Spans], labels: list[str], micro: float, macro: float
) -> None:
    found = strict_spans(predicted, gold, labels)
    assert found.micro.f1 == pytest.approx(micro)
    assert found.macro_f1 == pytest.approx(macro)
    assert sorted(found.by_label) == sorted(labels)


@given(SPANS, SPANS)
def test_predictions_and_gold_may_change_places_and_gold_scores_itself_fully(
    one: list[set[tuple[int, int, str]]], other: list[set[tuple[int, int, str]]]
) -> None:
    there, back = strict_spans(one, other, "AB"), strict_spans(other, one, "AB")
    assert there.micro.f1 == pytest.approx(back.micro.f1)
    assert there.micro.precision == back.micro.recall
    assert there.macro_f1 == pytest.approx(back.macro_f1)
    itself = strict_spans(one, one, "ABC")
    assert itself.micro.f1 == float(any(one))


def test_different_numbers_of_texts_are_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        strict_spans([[]], [], ["A"])


def test_span_counts_are_right_predicted_and_gold_of_each_label_in_the_order_asked() -> None:
    predicted = [[(0, 1, "A"), (2, 3, "B"), (2, 3, "B"), (4, 5, "C")], []]
    gold = [[(0, 1, "A"), (2, 4, "B")], [(0, 9, "B")]]
    assert span_counts(predicted, gold, ["B", "A"]).tolist() == [[0, 1, 1, 1, 1, 1], [0, 0, 1, 0, 0, 0]]
    assert span_counts([], [], ["A"]).shape == (0, 3)


@given(SPANS, SPANS)
def test_measures_of_span_counts_are_the_strict_scores(
    one: list[set[tuple[int, int, str]]], other: list[set[tuple[int, int, str]]]
) -> None:
    counts = span_counts(one, other, ["A", "B"])
    wanted = strict_spans(one, other, ["A", "B"])
    assert micro_f1("f1", "", [0, 3]).of(counts) == pytest.approx(wanted.micro.f1)
    assert macro_f1("f1", "", [0, 3]).of(counts) == pytest.approx(wanted.macro_f1)
    assert micro_f1("f1", "", [3]).of(counts) == pytest.approx(wanted.by_label["B"].f1)


MICRO, MACRO = micro_f1("micro", "", [0, 3]), macro_f1("macro", "", [0, 3])
SHARE = ratio("share", "", (0, 1))


def rows(*values: list[float]) -> Counts:
    return np.array(values, dtype=np.float64)


@pytest.mark.parametrize(
    ("counts", "micro", "macro"),
    [
        # 2 of 2 predicted and 2 gold; 0 of 1 predicted and 1 gold.
        (rows([1, 1, 1, 0, 1, 0], [1, 1, 1, 0, 0, 1]), 2 / 3, 0.5),
        (rows([3, 4, 6, 0, 0, 0]), 0.6, 0.3),
        (rows([0, 0, 0, 0, 0, 0]), 0.0, 0.0),
    ],
)
def test_f1_is_of_sums_over_records(counts: Counts, micro: float, macro: float) -> None:
    assert MICRO.of(counts) == pytest.approx(micro)
    assert MACRO.of(counts) == pytest.approx(macro)


def test_a_measure_scores_every_row_of_sums_on_its_own() -> None:
    sums = rows([1, 4], [3, 4], [5, 0])
    assert SHARE.value(sums).tolist() == [0.25, 0.75, 0.0]
    assert ratio("a thousand", "", (0, 1), times=1000).of(sums) == 1000 * 9 / 8


def answers(*right: int) -> Counts:
    return rows(*([float(r), 1.0] for r in right))


def test_a_seed_gives_the_same_interval_and_the_interval_holds_the_score() -> None:
    counts = answers(*[1, 1, 0] * 40)
    found = bootstrap(counts, [SHARE])["share"]
    assert found == bootstrap(counts, [SHARE])["share"]
    assert found.low < 2 / 3 < found.high
    # 1.96 standard errors to each side: 0.084.
    assert found.high - found.low == pytest.approx(0.168, abs=0.03)


def test_another_seed_draws_other_records() -> None:
    counts = rows(*([i**0.5, 1] for i in range(50)))
    assert bootstrap(counts, [SHARE], seed=1) != bootstrap(counts, [SHARE], seed=2)


def test_more_records_narrow_the_interval() -> None:
    few, many = (bootstrap(answers(*[1, 0] * n), [SHARE])["share"] for n in (10, 1000))
    assert many.high - many.low < (few.high - few.low) / 5


def test_resampling_in_chunks_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = answers(*[1, 0, 0] * 10)
    whole = bootstrap(counts, [SHARE], draws=100)
    monkeypatch.setattr("models.scores._CHUNK", 7 * len(counts))
    assert bootstrap(counts, [SHARE], draws=100) == whole


@settings(max_examples=25)
@given(st.lists(st.integers(0, 1), min_size=1, max_size=30), st.integers(0, 3))
def test_an_interval_lies_within_what_the_records_can_give(right: list[int], seed: int) -> None:
    found = bootstrap(answers(*right), [SHARE], draws=50, seed=seed)["share"]
    assert min(right) <= found.low <= found.high <= max(right)


def test_a_better_system_differs_from_nought_though_the_two_intervals_overlap() -> None:
    ours, theirs = answers(*[1, 1, 0, 0] * 20, 1, 1, 1, 1, 1, 1), answers(*[1, 1, 0, 0] * 20, *[0] * 6)
    found = paired_bootstrap(ours, theirs, [SHARE])["share"]
    assert found.difference == pytest.approx(6 / 86)
    assert 0 < found.low < found.difference < found.high
    assert bootstrap(ours, [SHARE])["share"].low < bootstrap(theirs, [SHARE])["share"].high
    back = paired_bootstrap(theirs, ours, [SHARE])["share"]
    assert tuple(back) == pytest.approx((-found.difference, -found.high, -found.low))


@settings(max_examples=25)
@given(st.lists(st.floats(0, 100), min_size=1, max_size=30))
def test_two_identical_systems_differ_by_exactly_nought(values: list[float]) -> None:
    counts = rows(*([v, 1] for v in values))
    assert tuple(paired_bootstrap(counts, counts.copy(), [SHARE], draws=50)["share"]) == (0, 0, 0)


def test_what_cannot_be_resampled_or_paired_is_refused() -> None:
    with pytest.raises(ValueError, match="no record"):
        bootstrap(np.zeros((0, 2)), [SHARE])
    with pytest.raises(ValueError, match="2 records cannot be paired with 1"):
        paired_bootstrap(answers(1, 0), answers(1), [SHARE])
