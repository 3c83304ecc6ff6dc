"""Scores that are counted by hand: strict spans, means over labels, and those of drawn rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.scores import Counts, Measure, span_counts
from training.evaluation.measures import accuracy_at, macro_f1, spearman, strict_f1

SPANS = st.lists(
    st.sets(st.tuples(st.integers(0, 4), st.integers(5, 9), st.sampled_from(["A", "B", "C"])), max_size=5),
    min_size=3,
    max_size=3,
)
Spans = list[tuple[int, int, str]]


def rows(*values: list[float]) -> Counts:
    return np.array(values, dtype=np.float64)


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
def test_mentions_are_right_with_exact_boundaries_and_labels_once_a_text(
    predicted: list[Spans], gold: list[Spans], labels: list[str], micro: float, macro: float
) -> None:
    assert strict_f1(predicted, gold, labels) == pytest.approx(micro)
    counts = span_counts(predicted, gold, labels)
    assert macro_f1("", "", range(0, 3 * len(labels), 3)).of(counts) == pytest.approx(macro)


@given(SPANS, SPANS)
def test_f1_is_the_harmonic_mean_of_precision_and_recall(
    predicted: list[set[tuple[int, int, str]]], gold: list[set[tuple[int, int, str]]]
) -> None:
    ours, theirs = ({(i, *s) for i, text in enumerate(own) for s in text} for own in (predicted, gold))
    precision, recall = (len(ours & theirs) / max(1, len(side)) for side in (ours, theirs))
    mean = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    assert strict_f1(predicted, gold, "ABC") == pytest.approx(mean)


@pytest.mark.parametrize(
    "measure",
    [
        spearman("all", "", (0, 1)),
        spearman("some", "", (0, 1), (2, 1)),
        *(accuracy_at(f"{share}", "", (2, 0, 3), share) for share in (0.2, 0.5, 1.0)),
    ],
    ids=lambda measure: measure.name,
)
@settings(max_examples=25)
@given(st.integers(0, 20), st.integers(0, 99))
def test_a_draw_scores_as_its_records_would_alone(measure: Measure, records: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    counts = generator.integers([4, 4, 2, 2], size=(records, 4)).astype(np.float64)
    weights = generator.integers(4, size=(5, records)).astype(np.float64)
    alone = [measure.of(np.repeat(counts, times.astype(int), axis=0)) for times in weights]
    assert measure.of_draws(counts, weights).tolist() == pytest.approx(alone)


def test_accuracy_is_of_the_share_with_the_highest_confidence_among_those_that_count() -> None:
    # Right, confidence, counted: the two that count and are most confident, then one more.
    counts = rows([1, 0.9, 1], [1, 0.8, 0], [0, 0.7, 1], [1, 0.2, 1], [0, 0.1, 1])
    assert accuracy_at("a", "", (0, 1, 2), 0.5).of(counts) == 0.5
    assert accuracy_at("a", "", (0, 1, 2), 0.75).of(counts) == pytest.approx(2 / 3)
    assert accuracy_at("a", "", (0, 1, 2), 0.01).of(counts) == 1
    assert accuracy_at("a", "", (0, 1, 2), 0.5).of(counts[:0]) == 0
