"""Negatives of Dynamic Context Refining: random terms of other preferred terms."""

from __future__ import annotations

import random
from collections.abc import Sequence

from training.normalization.data import Example


def random_negatives(data: Sequence[Example], terms: int, rng: random.Random) -> list[int]:
    """For each example one of the rows of `terms` whose preferred term is another."""
    return [_wrong(example, terms, rng) for example in data]


def _wrong(example: Example, terms: int, rng: random.Random) -> int:
    while (row := rng.randrange(terms)) in example.right_rows:
        pass
    return row
