"""The order of the records of a key, and the upsert."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models.types import TASKS
from streams.codec import BadRecord, encode
from streams.order import ORIGIN, RECEIVED_AT, Latest, Revision, read_revision, revision_of, tombstone_headers
from streams.records import NO_TIMESTAMP, CodedReport, Inbound, Origin, Report
from streams.topics import EVENTS, MENTIONS, POSTS, RELEASES
from tests.fakes import inbound

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


def revision(
    offset: int | None = None,
    partition: int = 0,
    minute: int | None = 0,
    topic: str = "posts",
    **generations: int,
) -> Revision:
    origin = None if offset is None else Origin(topic, partition, offset)
    received = None if minute is None else NOON + timedelta(minutes=minute)
    return revision_of(Report(id="a", text="b", origin=origin, received_at=received, generations=generations))


@pytest.mark.parametrize(
    ("new", "kept", "expected"),
    [
        (revision(8), revision(7), "newer"),
        (revision(7), revision(8), "stale"),
        (revision(7, minute=5), revision(8), "stale"),
        (revision(7, ner=3), revision(7, ner=3), "repeated"),
        (revision(7, ner=4), revision(7, ner=3), "newer"),
        (revision(7, ner=3), revision(7, ner=4), "stale"),
        (revision(8, ner=3), revision(7, ner=4), "newer"),
        (revision(7, ner=3, normalization=9), revision(7, ner=4, normalization=1), "stale"),
        (revision(7, normalization=9, ner=4), revision(7, ner=4, normalization=1), "newer"),
        (revision(7, ner=1), revision(7), "newer"),
        (revision(7, partition=1, minute=1), revision(900), "newer"),
        (revision(900, partition=1), revision(7, minute=1), "stale"),
        (revision(7, partition=1), revision(900), "newer"),
        (revision(7, topic="sentences"), revision(900, minute=1), "stale"),
        (revision(), revision(7, minute=1), "stale"),
        (revision(minute=1), revision(7), "newer"),
        (revision(7, minute=1), revision(), "newer"),
        (revision(), revision(), "newer"),
        (revision(minute=None), revision(7), "newer"),
        (revision(7), revision(minute=None), "newer"),
        # In one partition the offsets decide.
        (replace(revision(7), deletes=True), revision(8), "stale"),
        (revision(7), replace(revision(8), deletes=True), "stale"),
        (revision(8), replace(revision(7), deletes=True), "newer"),
        # Two deletions.
        (
            replace(revision(7), deletes=True),
            replace(revision(8, partition=1, minute=1), deletes=True),
            "stale",
        ),
        # An id on two topics.
        (replace(revision(7), deletes=True), revision(8, topic="sentences", minute=1), "stale"),
        (revision(8, topic="sentences", minute=1), replace(revision(7), deletes=True), "newer"),
        # Without the place of one.
        (replace(revision(minute=-1), deletes=True), revision(8), "newer"),
        (replace(revision(7, minute=-1), deletes=True), revision(), "newer"),
        (revision(8, minute=1), replace(revision(), deletes=True), "newer"),
    ],
)
def test_the_order_of_two_records_and_of_deletions(new: Revision, kept: Revision, expected: str) -> None:
    assert new.against(kept) == expected


@pytest.mark.parametrize("minute", [-600, 0, 600, None])
@pytest.mark.parametrize("generation", [0, 3])
def test_a_deletion_in_another_partition_wins_in_whatever_order_and_whenever_it_was_sent(
    minute: int | None, generation: int
) -> None:
    """The key has moved, because partitions were added."""
    report = revision(900, partition=1, ner=generation)
    deletion = replace(revision(3, partition=5, minute=minute), deletes=True)
    assert (deletion.against(report), report.against(deletion)) == ("newer", "stale")
    again = revision(4, partition=5, minute=-700)
    assert again.against(deletion) == "newer"
    for records in permutations([(report, "value"), (deletion, None)]):
        latest: Latest[str] = Latest()
        for one, value in records:
            latest.offer("a", one, value)
        assert not list(latest.items())
        latest.offer("a", again, "again")
        assert list(latest.items()) == [("a", "again")]


def test_another_release_is_no_repeat_and_generations_are_in_the_order_of_stages() -> None:
    one, other = (replace(revision(7), releases=frozenset({("ner", version)})) for version in ("a", "b"))
    assert (one.against(one), one.against(other), other.against(one)) == ("repeated", "newer", "newer")
    chains = (("ner", "normalization"), ("acronym", "relation", "normalization"))
    assert all([TASKS.index(stage) for stage in chain] == sorted(map(TASKS.index, chain)) for chain in chains)


@settings(suppress_health_check=[HealthCheck.too_slow])  # on a machine under load
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.booleans()), max_size=30), st.randoms())
def test_of_one_partition_the_upsert_keeps_the_same_in_whatever_order_records_arrive(
    records: list[tuple[int, int, bool]], rng: random.Random
) -> None:
    """Records of 5 source records by 4 generations; what is made of a deletion is a deletion."""
    deleted = {offset for offset, _, is_deletion in records if is_deletion}
    made = [(offset, 0 if offset in deleted else n) for offset, n, _ in records]
    kept = []
    for _ in range(2):
        latest: Latest[Any] = Latest()
        for offset, generation in made:
            value = None if offset in deleted else (offset, generation)
            latest.offer("a", revision(offset, ner=generation), value)
        kept.append(dict(latest.items()))
        rng.shuffle(made)
    newest = max(made, default=(0, 0))
    expected = {} if not made or newest[0] in deleted else {"a": newest}
    assert kept == [expected, expected]


def test_the_upsert_remembers_a_bounded_number_of_deletions_the_last_ones() -> None:
    latest: Latest[str] = Latest(deletions=2)
    for offset, key in enumerate("abcab"):
        latest.offer(key, revision(10 + offset), None)
    latest.offer("d", revision(5), "value")
    assert [latest.offer(key, revision(9), "stale") for key in "abc"] == ["stale", "stale", "newer"]
    assert list(latest.items()) == [("d", "value"), ("c", "stale")]


def test_the_revision_of_a_record_of_a_stage_is_in_the_record_and_of_a_deletion_in_its_headers() -> None:
    record = CodedReport(
        id="a", text="b", origin=Origin("posts", 2, 7), generations={"ner": 3}, received_at=NOON
    )
    assert read_revision(EVENTS, inbound(50, encode(record), "events")) == revision(7, partition=2, ner=3)
    source = Inbound("posts", 2, 8, b"a", None, NOON.timestamp())
    deletion = Inbound("mentions", 1, 50, b"a", None, 0.0, tombstone_headers(POSTS, source))
    assert read_revision(MENTIONS, deletion) == revision(8, partition=2)
    assert read_revision(MENTIONS, deletion).deletes
    assert read_revision(POSTS, source).deletes
    assert not read_revision(POSTS, replace(source, value=b"{}")).deletes
    again = Inbound("events", 0, 70, b"a", None, 0.0, tombstone_headers(MENTIONS, deletion))
    assert read_revision(EVENTS, again) == revision(8, partition=2)


def test_what_comes_later_without_a_time_stamp_is_not_older_than_all_else() -> None:
    """Its key may have moved to another partition."""
    kept = revision(7, partition=2)
    deletion = Inbound("posts", 5, 1, b"a", None, NO_TIMESTAMP)
    passed = Inbound("events", 0, 70, b"a", None, 0.0, tombstone_headers(POSTS, deletion))
    assert read_revision(POSTS, deletion).against(kept) == "newer"
    assert read_revision(EVENTS, passed).against(kept) == "newer"


def test_a_message_that_no_stage_wrote_is_its_own_source_record() -> None:
    forged = encode(Report(id="a", text="b", origin=Origin("posts", 0, 10**9)))
    for topic, value in ((POSTS, forged), (POSTS, None), (RELEASES, b"{}")):
        message = Inbound(topic.name, 3, 5, b"a", value, NOON.timestamp(), ((ORIGIN, b"posts/0/99"),))
        assert read_revision(topic, message) == revision(5, partition=3, topic=topic.name)


@pytest.mark.parametrize(
    "text",
    [
        None, b"", b"posts", b"posts/1", b"posts/x/2", b"a/b/c/d", b"\xff/1/2"[:1], b"posts/-1/2",
        b"posts/0/9223372036854775808", b"0001-01-01T00:00:00+14:00",
    ],
)  # fmt: skip
def test_unreadable_headers_give_no_place_and_unreadable_bytes_no_revision(text: bytes | None) -> None:
    message = Inbound("events", 0, 7, b"a", None, 0.0, ((ORIGIN, text), (RECEIVED_AT, text)))
    assert read_revision(EVENTS, message) == Revision()
    with pytest.raises(BadRecord):
        read_revision(EVENTS, inbound(0, b"no json", "events"))
