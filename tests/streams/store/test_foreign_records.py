"""Records that no stage and no page writes, but that somebody else may write to their topics."""

from __future__ import annotations

import json
from typing import Any

import orjson

from streams.codec import encode
from streams.records import Inbound
from tests.streams.reviews.test_cases import decision
from tests.streams.store.conftest import Open
from tests.streams.store.messages import event, message, report
from tests.streams.store.test_contract import apply, rows

LARGE = 2**63
NOT_FINITE = float("inf")


def changed(value: bytes | None, path: str, new: Any) -> bytes:
    """The JSON of a record with another value at a path of names and positions."""
    record = found = orjson.loads(value or b"")
    *way, last = path.split(".")
    for step in way:
        found = found[int(step)] if step.isdecimal() else found[step]
    found[last] = new
    return json.dumps(record).encode()


#: Where a record has what no database can take.
WRONG = [
    ("origin.offset", LARGE), ("origin.partition", 2**70), ("generations", {"ner": 2**70}),
    ("created_at", "0001-01-01T00:00:00+14:00"), ("received_at", "9999-12-31T23:59:59-12:00"),
    ("events.0.mention", 1), ("events.0.mention", -1), ("events.0.score", NOT_FINITE),
    ("mentions.0.end", 2**70),
]  # fmt: skip
WRONG_DECISIONS = [
    ("sequence", LARGE), ("start", 2**70), ("end", 2**70), ("decided_at", "0001-01-01T00:00:00+14:00"),
    ("after.start", 2**70),
]  # fmt: skip


def test_what_no_database_can_take_is_passed(opened: Open) -> None:
    database = opened(write=True)
    made = encode(report("a", 1, event(), text="", aggregate_only=True))
    for i, (path, new) in enumerate(WRONG):
        foreign = Inbound("events", 0, i, b"a", changed(made, path, new), 0.0)
        counts = apply(database, foreign, message(100 + i, report(f"b{i}", 2)))
        assert (counts["unreadable"], counts["written"]) == (1, 1), (path, new)
    for i, (path, new) in enumerate(WRONG_DECISIONS):
        value = changed(decision("b2", "accept").value, path, new)
        counts = apply(
            database, Inbound("reviews", 0, i, b"b2", value, 0.0), message(200 + i, report(f"c{i}", 2))
        )
        assert (counts["unreadable"], counts["written"]) == (1, 1), (path, new)
    stored = {id_ for (id_,) in rows(database, "SELECT id FROM reports")}
    assert stored == {f"b{i}" for i in range(len(WRONG))} | {f"c{i}" for i in range(len(WRONG_DECISIONS))}
    assert rows(database, "SELECT sequence FROM reviews") == []


def test_a_time_without_a_zone_is_read_as_utc(opened: Open) -> None:
    database = opened(write=True)
    value = changed(encode(report("a", 1)), "created_at", "2026-03-04T11:00:00")
    apply(database, Inbound("events", 0, 0, b"a", value, 0.0))
    ((time,),) = rows(database, "SELECT reported_at FROM reports")
    assert str(time)[:19] == "2026-03-04 11:00:00"


def test_a_character_that_postgresql_does_not_store_is_replaced(opened: Open) -> None:
    database = opened(write=True)
    paths = ("source", "record_id", "origin.topic", "mentions.0.label", "events.0.pt", "events.0.soc")
    for i, path in enumerate(paths):
        value = changed(encode(report(f"a{i}", 1, event())), path, "nul \0 byte")
        assert apply(database, Inbound("events", 0, i, f"a{i}".encode(), value, 0.0))["written"] == 1, path
    decided = changed(decision("a1", "accept").value, "reviewer", "nul \0 byte")
    assert apply(database, Inbound("reviews", 0, 0, b"a1", decided, 0.0))["unreadable"] == 0
    assert rows(database, "SELECT sequence FROM reviews") == [(1,)]
