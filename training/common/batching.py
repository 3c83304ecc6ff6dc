"""Batches of similar length, so that little padding is computed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def length_batches(
    data: Sequence[T], *, size: int, pool: int, length: Callable[[T], int], rng: random.Random
) -> list[list[T]]:
    """Every record once, in random batches of `size`; records of similar length share a batch, out of a
    random pool of `pool` batches. The same `rng` gives the same batches.
    """
    order = list(data)
    rng.shuffle(order)
    batches = []
    for start in range(0, len(order), size * pool):
        near = sorted(order[start : start + size * pool], key=length)
        batches += [near[i : i + size] for i in range(0, len(near), size)]
    rng.shuffle(batches)
    return batches


def by_length(lengths: Sequence[int], size: int) -> Iterator[list[int]]:
    """Indices in batches of `size`, shortest first: for predictions, which need no random order."""
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    for start in range(0, len(order), size):
        yield order[start : start + size]
