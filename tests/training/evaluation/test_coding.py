"""Draws of terms that are taken out, and how predicted terms are matched with gold mentions."""

from __future__ import annotations

from collections.abc import Sequence, Set
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from models.terminology import Term
from models.types import Candidate, Coding, Query
from training.common.codings.removed_terms import draws, half_of
from training.common.codings.split import pts_by_term
from training.common.corpora import GoldCoding
from training.evaluation.coding import removed_terms
from training.evaluation.coding.end_to_end import matched_terms
from training.evaluation.coding.removed_terms import Removed

TERMS = [Term(f"term {i}", f"Concept {i}", "S") for i in range(60)]
GOLDS = [GoldCoding(f"words {i}", f"words {i}", "d", (f"Term {i}",)) for i in range(60)]


def test_draws_are_of_one_half_and_leave_the_other_alone() -> None:
    by_term = pts_by_term(TERMS)
    for half in ("development", "test"):
        found = list(draws(GOLDS, by_term, half, 3))
        assert found == list(draws(GOLDS, by_term, half, 3))
        own = [t.pt for t in TERMS if half_of(t.pt) == half]
        for draw in found:
            assert len(draw.removed) == round(len(own) / 5)
            assert draw.removed <= set(own)
            assert {pt for right in draw.right for pt in right} == set(own)
            assert sum(draw.missing) == len(draw.removed)
        assert len({d.removed for d in found}) == 3
    assert {half_of(t.pt) for t in TERMS} == {"development", "test"}


def test_a_mention_with_several_terms_is_missing_only_without_all_of_them() -> None:
    names = tuple(f"Term {i}" for i in range(60) if half_of(f"Concept {i}") == "test")
    gold = GoldCoding("both", "both", "d", names)
    (draw,) = draws([gold], pts_by_term(TERMS), "test", 1)
    assert draw.mentions == [], "some of its terms are left, so neither"


class Names:
    """Codes `words 7` to `term 7` or, where that is taken out, to another term; NIL where it is odd."""

    nil_below = 0.5

    def __init__(self, terms: Sequence[Term]) -> None:
        self.terms = list(terms)

    def without(self, pts: Set[str]) -> Names:
        return Names([t for t in self.terms if t.pt not in pts])

    def predict(self, batch: Sequence[Query]) -> list[Coding]:
        return [self._coding(int(q.surface.split()[1])) for q in batch]

    def _coding(self, number: int) -> Coding:
        own = [t for t in self.terms if t.llt == f"term {number}"]
        best = own[0] if own else self.terms[0]
        score = 0.9 if own else 0.4
        return Coding((Candidate(best.llt, best.pt, best.soc, score),), nil=bool(number % 2))


def test_the_coder_is_asked_without_the_terms_and_a_threshold_is_the_baseline() -> None:
    corpus = Removed("d", GOLDS, 30)
    result = removed_terms.measure(Names(TERMS), corpus)
    scores: dict[str, Any] = {m.name: m.of(result.counts) for m in result.measures}
    base = {m.name: m.of(result.baseline) for m in result.measures}
    # The cosine of every missing concept is below the threshold, and that of no known one.
    assert (base["nil_of_missing"], base["known_lost"], base["right_lost"]) == (1, 0, 0)
    known = [i for i in range(60) if half_of(f"Concept {i}") == "test"]
    odd = sum(i % 2 for i in known) / len(known)
    assert scores["known_lost"] == scores["right_lost"] == pytest.approx(odd, abs=0.15)
    assert 0 < scores["known_lost_psytar"] != scores["known_lost_phrases"] > 0
    assert (len(result.counts), result.parts["known_lost_psytar"].records) == (60, 30)


terms = st.frozensets(st.sampled_from("ABCDEF"), min_size=1, max_size=3)


def test_a_term_is_not_taken_from_the_only_mention_that_it_is_right_for() -> None:
    for a, b, c in permutations("ABC"):
        assert matched_terms({frozenset({a, b}), frozenset({a, c})}, {a, b}) == 2


@given(st.frozensets(terms, max_size=5), st.frozensets(st.sampled_from("ABCDEF")))
def test_as_many_are_found_as_can_be_assigned(gold: frozenset[frozenset[str]], found: frozenset[str]) -> None:
    table = np.array([[pt in wanted for pt in sorted(found)] for wanted in gold], float)
    table = table.reshape(len(gold), len(found))
    assert matched_terms(gold, found) == table[linear_sum_assignment(table, maximize=True)].sum()
