from __future__ import annotations

import pytest
from aiokafka import TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from streams.dead_letters.sent import MAX_METADATA, SentOffsets, hold, read, written

TP = TopicPartition("posts.dead", 0)


def sent_offsets(offset: int = 0, *left: tuple[int, int]) -> SentOffsets:
    one = SentOffsets(None)
    one.offsets, one.left = {TP: offset}, {TP: list(left)}
    return one


@given(st.lists(st.sampled_from(("leave", "take", "other")), max_size=60))
def test_exactly_what_was_left_waits_for_a_run_with_other_options(outcomes: list[str]) -> None:
    one = sent_offsets()
    for offset, outcome in enumerate(outcomes):
        if outcome == "leave":
            one.leave(TP, offset)
        elif outcome == "take":
            one.take(TP, offset)
    again = sent_offsets(len(outcomes), *read(written(one.left[TP])))
    waiting = {n for n in range(len(outcomes)) if again.waits(TP, n, with_left=True)}
    assert {n for n, outcome in enumerate(outcomes) if outcome == "leave"} <= waiting
    assert not waiting & {n for n, outcome in enumerate(outcomes) if outcome == "take"}
    assert not any(again.waits(TP, n, with_left=False) for n in range(len(outcomes)))
    for n in sorted(waiting):
        again.take(TP, n)
    assert again.left[TP] == []


def test_a_run_extends_no_range_of_an_earlier_one_over_what_was_sent_between() -> None:
    one = sent_offsets(10, (3, 5))
    one.leave(TP, 12)
    one.leave(TP, 14)
    assert one.left[TP] == [(3, 5), (12, 15)]
    assert (one.first(TP, with_left=False), one.first(TP, with_left=True)) == (10, 3)


def test_letters_that_have_expired_are_forgotten() -> None:
    one = sent_offsets(10, (1, 3), (4, 7), (8, 9))
    one.drop_expired({TP: 5})
    assert one.left[TP] == [(5, 7), (8, 9)]
    one.drop_expired({TP: 20})
    assert one.left[TP] == []


def test_what_does_not_fit_is_left_out_from_the_end(caplog: pytest.LogCaptureFixture) -> None:
    ranges = [(3 * n, 3 * n + 1) for n in range(5000)]
    text = written(ranges)
    kept = read(text)
    assert len(text) <= MAX_METADATA
    assert kept == ranges[: len(kept)]
    assert f"{5000 - len(kept)} ranges" in caplog.text


@pytest.mark.parametrize(
    "metadata", ["", "of another", "1", "1+", "-1+2", "1+2,3+4", "1+2  3+4", "9" * 30 + "+1"]
)
def test_metadata_of_others_names_nothing(metadata: str) -> None:
    assert read(metadata) == []
    assert not hold(read(metadata), 1)
