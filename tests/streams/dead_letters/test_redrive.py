from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.dead_letters.headers import Fault, attempts_of, dead_letter_headers
from streams.dead_letters.redrive import (
    REASONS,
    reason_of,
    redrive,
    redrive_headers,
    source_topic,
)
from streams.records import Inbound
from streams.settings import Settings
from streams.topics import CONSUMED, TopicsError

Pairs = list[tuple[str, bytes | None]]


@pytest.mark.parametrize("topic", CONSUMED)
def test_a_dead_letter_topic_belongs_to_the_topic_it_is_named_after(topic: object) -> None:
    assert source_topic(f"{topic.name}.dead") is topic  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["posts", "events.dead", "posts.dead.dead", "", ".dead"])
def test_any_other_topic_is_refused_with_the_names_of_the_dead_letter_topics(name: str) -> None:
    with pytest.raises(TopicsError, match=r"posts\.dead"):
        source_topic(name)


async def test_an_unknown_reason_is_refused_without_a_request_to_the_broker() -> None:
    nowhere = Settings(broker="kafka://127.0.0.1:1")
    with pytest.raises(ValueError, match="no reason 'bored'; the reasons are bad_record"):
        await redrive(nowhere, "posts.dead", reason="bored", limit=0, progress=lambda done, total: None)


@pytest.mark.parametrize(
    ("letter_headers", "reason"),
    [
        ([("pv-reason", b"poison")], "poison"),
        ([("pv-reason", b"a reason of a later version")], "other"),
        ([("pv-reason", b"\xff")], "other"),
        ([], "other"),
    ],
)
def test_a_missing_or_unknown_reason_counts_as_other(letter_headers: Pairs, reason: str) -> None:
    assert reason_of(letter_headers) == reason
    assert reason in REASONS


@pytest.mark.parametrize("text", [b"", b"-1", b"two", b"\xb2", b"9" * 5000, b"1.5"])
def test_an_attempts_header_that_is_not_a_number_counts_as_zero(text: bytes) -> None:
    assert attempts_of([("pv-attempts", text)]) == 0


def test_a_letter_is_sent_back_with_its_own_headers_and_one_more_attempt() -> None:
    letter: Pairs = [("trace", b"7"), ("pv-reason", b"poison"), ("pv-attempts", b"1"), ("trace", b"8")]
    assert redrive_headers(letter) == [("trace", b"7"), ("trace", b"8"), ("pv-attempts", b"2")]


@given(st.lists(st.tuples(st.text(max_size=8).map("x".__add__), st.binary(max_size=8)), max_size=5))
def test_a_record_keeps_its_headers_through_any_number_of_redrives(own: Pairs) -> None:
    carried: Pairs = list(own)
    for attempt in range(1, 4):
        record = Inbound("posts", 0, attempt, None, b"", 0.0, tuple(carried))
        letter = dead_letter_headers(record, "ner", Fault("poison", "ValueError"), "0123456789ab")
        carried = redrive_headers(letter)
        assert carried == [*own, ("pv-attempts", str(attempt).encode())]
