"""Draws of terms that are removed from a terminology, to test whether a coder detects a missing concept.

Preferred terms have two halves, by a hash of their names: rules are chosen on draws from one and measured on
draws from the other.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from training.common.codings.split import right_terms
from training.common.corpora import GoldCoding

Half = Literal["development", "test"]
#: Of the preferred terms of a half, in each draw.
SHARE = 0.2


class Draw(NamedTuple):
    """Preferred terms that are taken out, and the mentions of this half: `missing` those whose every right
    term is taken out, `known` those of which none is.
    """

    removed: frozenset[str]
    mentions: list[GoldCoding]
    right: list[frozenset[str]]
    missing: list[bool]


def half_of(pt: str) -> Half:
    """The half that a preferred term belongs to."""
    return "test" if hashlib.sha256(pt.encode()).digest()[0] % 2 else "development"


def draws(
    golds: Sequence[GoldCoding], by_term: Mapping[str, set[str]], half: Half, n: int, seed: int = 0
) -> Iterator[Draw]:
    """`n` draws from a half. `by_term`: lowest-level term in lower case to its preferred terms; mentions
    without a right term in it, or with one of the other half, are left out.
    """
    of_half = sorted({pt for pts in by_term.values() for pt in pts if half_of(pt) == half})
    rows = [(g, frozenset(right_terms(g, by_term))) for g in golds]
    rows = [(g, right) for g, right in rows if right and all(half_of(pt) == half for pt in right)]
    for number in range(n):
        removed = frozenset(
            random.Random(f"{seed} {half} {number}").sample(of_half, round(SHARE * len(of_half)))
        )
        clear = [(g, right) for g, right in rows if right <= removed or not right & removed]
        yield Draw(
            removed,
            [g for g, _ in clear],
            [right for _, right in clear],
            [right <= removed for _, right in clear],
        )
