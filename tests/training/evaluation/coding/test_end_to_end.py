"""How predicted terms are matched with gold mentions."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from training.evaluation.coding.end_to_end import matched_terms

terms = st.frozensets(st.sampled_from("ABCDEF"), min_size=1, max_size=3)


def test_a_term_is_not_taken_from_the_only_mention_that_it_is_right_for() -> None:
    for a, b, c in permutations("ABC"):
        assert matched_terms({frozenset({a, b}), frozenset({a, c})}, {a, b}) == 2


@given(st.frozensets(terms, max_size=5), st.frozensets(st.sampled_from("ABCDEF")))
def test_as_many_mentions_are_found_as_an_assignment_can_give(
    gold: frozenset[frozenset[str]], found: frozenset[str]
) -> None:
    table = np.array([[pt in wanted for pt in sorted(found)] for wanted in gold], float)
    table = table.reshape(len(gold), len(found))
    assert matched_terms(gold, found) == table[linear_sum_assignment(table, maximize=True)].sum()
