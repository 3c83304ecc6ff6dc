"""Every pair of near-duplicates is found, as by comparing each text with each."""

from __future__ import annotations

from itertools import combinations

from hypothesis import example, given
from hypothesis import strategies as st

from training.teaching.checks.near_duplicates import Index, Shingles, normalised

TEXTS = st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=9).map(" ".join), max_size=12)
CUTS = st.builds(Shingles, st.sampled_from([1, 2, 3]), st.sampled_from([0.2, 0.5, 0.6, 0.8]), st.booleans())


def jaccard(shingles: Shingles, one: str, other: str) -> float:
    a, b = shingles.of(normalised(one)), shingles.of(normalised(other))
    return len(a & b) / len(a | b) if a and b else 0.0


@given(TEXTS, CUTS)
@example(["a b c d a", "b c d a a"], Shingles(2, 0.6, of_words=True))  # exactly at the threshold
def test_pairs_inside_are_all_that_are_alike_enough(texts: list[str], shingles: Shingles) -> None:
    found = {(i, j): score for i, j, score in Index(texts, shingles).inside()}
    assert found == {
        (i, j): score
        for j, i in combinations(range(len(texts)), 2)
        if (score := jaccard(shingles, texts[i], texts[j])) >= shingles.threshold
    }


@given(TEXTS, TEXTS, CUTS)
def test_other_texts_are_compared_with_all(texts: list[str], others: list[str], shingles: Shingles) -> None:
    named = [(str(n), text) for n, text in enumerate(others)]
    found = sorted(Index(texts, shingles).near(named))
    assert found == sorted(
        (name, i, score)
        for name, other in named
        for i, text in enumerate(texts)
        if (score := jaccard(shingles, other, text)) >= shingles.threshold
    )
