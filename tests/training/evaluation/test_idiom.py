"""The scores on SemEval-2022 task 2B: similarities, gold ones and rank correlations computed by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.training.idiom.corpus import unit
from training.evaluation.evaluate import compare, evaluate
from training.evaluation.idiom import PRIMARY, STS, Pair, pair_counts, read_pairs, scores
from training.evaluation.measures import spearman


class FixedVectors:
    """A model whose vectors are given as angles."""

    def __init__(self, degrees: dict[str, float]) -> None:
        self.degrees = degrees

    def predict(self, texts: Sequence[str]) -> list[list[float]]:
        return [unit(self.degrees[t]) for t in texts]

    def untrained(self) -> FixedVectors:
        return FixedVectors({t: 10.0 * i for i, t in enumerate(self.degrees)})


DEGREES = {
    **{"a night owl": 0.0, "a late person": 10.0, "a dark bird": 50.0, "drug": 0.0, "the drug": 30.0},
    **{"a shop": 90.0, "pain": 20.0, "a dark shop": 100.0, "um olho": 0.0, "uma vista": 1.0},
}


def test_an_empty_gold_similarity_is_replaced_by_the_models_own(semeval: Path) -> None:
    pairs = read_pairs(semeval / "idioms", "EN")
    assert pairs[1] == Pair("a night owl", "a dark bird", None, ("a late person", "a dark bird"), True)
    cos = {d: math.cos(math.radians(d)) for d in (10, 30, 40, 50, 80, 90)}
    expected = [
        *((cos[10], 1.0, 1), (cos[50], cos[40], 1)),
        *((cos[30], 0.9, 0), (cos[90], 0.3, 0), (cos[80], 0.1, 0)),
    ]
    counts = pair_counts(FixedVectors(DEGREES), pairs)
    assert counts == pytest.approx(np.array(expected), abs=1e-9)


def test_the_scores_are_the_rank_correlations_computed_by_hand(semeval: Path) -> None:
    result = evaluate("idiom", FixedVectors(DEGREES), "v1", semeval)
    # Ranks, predicted: 5 3 4 1 2; gold (1, 0.766, 0.9, 0.3, 0.1): 5 3 4 2 1; 1 - 6 * 2 / 120.
    assert result.scores == pytest.approx({PRIMARY: 1.0, STS: 0.5, "spearman_all": 0.9})
    assert result.records == 5
    records = {name: result.part(name).records for name in result.scores}
    assert records == {PRIMARY: 2, STS: 3, "spearman_all": 5}
    untrained = pair_counts(FixedVectors(DEGREES).untrained(), read_pairs(semeval / "idioms", "EN"))
    assert result.baselines[STS] == pytest.approx(scores(untrained)[STS])
    for name, (low, high) in result.intervals.items():
        assert -1 <= low <= result.scores[name] <= high <= 1
    equal = compare(result, result)
    assert (equal.score, equal.difference, equal.low, equal.high) == (PRIMARY, 0, 0, 0)


def test_the_held_out_split_lacks_the_sts_pairs_of_training(semeval: Path) -> None:
    whole = evaluate("idiom", FixedVectors(DEGREES), "v1", semeval)
    held = evaluate("idiom", FixedVectors(DEGREES), "v1", semeval, "dev_en_heldout")
    assert (whole.records, held.records, held.part(STS).records) == (5, 3, 1)
    assert held.scores[PRIMARY] == whole.scores[PRIMARY]
    assert evaluate("idiom", FixedVectors(DEGREES), "v1", semeval, "dev_pt").records == 1


def test_equal_values_share_their_ranks_and_a_constant_has_no_correlation() -> None:
    measure = spearman("s", "", (0, 1))
    # Ranks less their mean -1 -1 0.5 1.5 and -1.5 0 0 1.5: 3.75 / sqrt(4.5 * 4.5).
    counts = np.array([[1.0, 1], [1, 2], [2, 2], [3, 9]])
    assert measure.of(counts) == pytest.approx(3.75 / 4.5)
    assert measure.of(np.ones((3, 2))) == 0
    assert measure.of(counts[:0]) == 0


def test_a_bootstrap_sample_has_a_record_as_often_as_its_weight() -> None:
    measure = spearman("s", "", (0, 1))
    counts = np.random.default_rng(0).normal(size=(5, 2))
    weights = np.array([[1.0, 1, 1, 1, 1], [3, 0, 1, 1, 0]])
    drawn = measure.of_draws(counts, weights)
    assert drawn[0] == pytest.approx(measure.of(counts))
    assert drawn[1] == pytest.approx(measure.of(counts[[0, 0, 0, 2, 3]]))
