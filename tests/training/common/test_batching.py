"""Batches of like length."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from training.common.batching import by_length, length_batches
from training.common.loop import steps_of

LENGTHS = st.lists(st.integers(1, 40), min_size=1, max_size=60)


@given(LENGTHS, st.integers(1, 9), st.integers(1, 5), st.integers(0, 3))
def test_batches_hold_every_record_once_and_are_as_many_as_the_schedule_counts(
    lengths: list[int], size: int, pool: int, seed: int
) -> None:
    data = list(enumerate(lengths))
    batches = length_batches(data, size=size, pool=pool, length=lambda r: r[1], rng=random.Random(seed))
    assert sorted(record for batch in batches for record in batch) == data
    assert all(0 < len(batch) <= size for batch in batches)
    if len(data) <= size * pool:
        assert len(batches) == steps_of(1, len(data), size)


def test_records_of_like_length_share_a_batch_in_an_order_that_the_generator_decides() -> None:
    data = [n % 10 for n in range(100)]

    def batches(seed: int) -> list[list[int]]:
        return length_batches(data, size=10, pool=10, length=lambda n: n, rng=random.Random(seed))

    assert all(len(set(batch)) == 1 for batch in batches(1))
    assert batches(1) == batches(1)
    assert batches(1) != batches(2)


@given(LENGTHS, st.integers(1, 9))
def test_predictions_are_made_from_the_shortest_on(lengths: list[int], size: int) -> None:
    order = [i for batch in by_length(lengths, size) for i in batch]
    assert sorted(order) == list(range(len(lengths)))
    assert [lengths[i] for i in order] == sorted(lengths)
