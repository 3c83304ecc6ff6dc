"""What every database of the store does."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import orjson
import pytest

from models.drugs.suspects import Suspects
from models.types import Mention, ShortQuestion, TaggedText
from streams.codec import encode
from streams.order import ORIGIN, RECEIVED_AT, revision_of
from streams.records import Inbound, Origin, Summary
from streams.settings import Settings
from streams.signals.population import Population, count
from streams.store.database import Database
from streams.store.follow import Follower
from streams.store.tables import REPORTS
from tests.streams.store.conftest import Open
from tests.streams.store.messages import NOON, deletion, event, message, report


def apply(database: Database, *messages: Inbound) -> dict[str, int]:
    follower = Follower(Settings(), database)
    follower.apply(messages)
    return dict(follower.counts)


def rows(database: Database, sql: str) -> list[tuple[Any, ...]]:
    _, found = database.query(sql)
    return [tuple(row) for row in found]


def contents(database: Database) -> list[list[tuple[Any, ...]]]:
    """All that a reader can see, in an order of its own."""
    return [
        rows(database, f"SELECT {columns} {end}")
        for columns, end in (
            ("id, text, source, duplicate_of, reported_at", "FROM reports WHERE NOT deleted ORDER BY id"),
            ("report_id, position, mention, pt, negated", "FROM events ORDER BY 1, 2"),
            ("report_id, source, drug, pt, soc, affirmed", "FROM pairs ORDER BY 1, 3, 4, 6"),
        )
    ]


#: 16,896 characters, all different.
LONG = "".join(map(chr, range(0x4E00, 0x9000)))
STATED = {"drug": "x", "indication": "gout \0 flare"}


def test_a_report_becomes_rows_of_three_tables(opened: Open) -> None:
    database = opened(write=True)
    events = event(), event(pt="Insomnia", negated=True), event(pt=None)
    counts = apply(database, message(5, report("a", 7, *events, language="en", text="nul \0 byte", **STATED)))
    assert counts["written"] == 1
    noon = datetime(2026, 3, 4, 12, 7)
    assert contents(database) == [
        [("a", "nul � byte", "posts", None, noon)],
        [
            ("a", 0, "text", "Nausea", False),
            ("a", 1, "text", "Insomnia", True),
            ("a", 2, "text", None, False),
        ],
        [
            ("a", "posts", "sertraline", "Insomnia", "Psychiatric disorders", False),
            ("a", "posts", "sertraline", "Nausea", "Gastrointestinal disorders", True),
        ],
    ]
    assert database.offsets() == {("events", 0): 6}
    sql = "SELECT language, drug, indication, serious FROM reports JOIN events ON id = report_id"
    assert rows(database, sql)[0] == (
        "en", "x", "gout � flare", False,
    )  # fmt: skip


def test_what_is_no_product_stays_with_its_event_and_is_in_no_pair(opened: Open) -> None:
    database = opened(write=True)
    statin = Mention(0, 4, "text", "DRUG", 0.9, "statin", kind="class", members=("atorvastatin",))
    both = replace(event(), drugs=("statin", "ezetimibe", "iphone5", "placebo"))
    effect = Mention(5, 9, "here", "ADE", 0.9)
    apply(database, message(0, report("a", 1, replace(both, mention=1), mentions=(statin, effect))))
    apply(database, message(1, report("b", 2, event("Antibiotics"))))
    assert rows(database, "SELECT report_id, drug FROM pairs") == [("a", "ezetimibe")]
    assert rows(database, "SELECT drugs FROM events ORDER BY report_id") == [
        ('["statin","ezetimibe","iphone5","placebo"]',), ('["Antibiotics"]',),
    ]  # fmt: skip
    ((mentions,),) = rows(database, "SELECT mentions FROM reports WHERE id = 'a'")
    assert [(m["generic"], m["kind"], m["members"]) for m in orjson.loads(mentions)] == [
        ("statin", "class", ["atorvastatin"]), (None, None, []),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("drug", "is_counted"),
    [("\\u0000", False), ("a\\\\u0000\\", False), ("\\uabcd", True), ("nul \0 byte", True)],
)
def test_a_drug_with_the_characters_of_an_escape_is_kept_as_it_is(
    opened: Open, drug: str, is_counted: bool
) -> None:
    """No unknown name with a digit is in a pair."""
    database = opened(write=True)
    apply(database, message(0, report("a", 1, event(drug))))
    kept = drug.replace("\0", "�")
    assert rows(database, "SELECT drug FROM pairs") == [(kept,)] * is_counted
    assert orjson.loads(rows(database, "SELECT drugs FROM events")[0][0]) == [kept]


def test_reviews_that_do_not_name_their_drug_count_for_it(opened: Open) -> None:
    database = opened(write=True)
    stated: list[tuple[str, Any]] = [("a", "ZOLOFT"), ("b", ("sertraline", "Wellbutrin")), ("c", None)]
    for place, (id_, drug) in enumerate(stated):
        tagged = replace(report(id_, place), drug=drug, events=())
        suspected, evidence = Suspects(
            tagged.text, TaggedText(tagged.mentions), stated=tagged.stated_drugs
        ).of(0)
        found = replace(event(), drugs=suspected, drug_evidence=evidence)
        apply(database, message(place, replace(tagged, events=(found,))))
    assert rows(database, "SELECT drug, drug_evidence, count(*) FROM pairs GROUP BY 1, 2 ORDER BY 1") == [
        ("bupropion", "report", 1), ("sertraline", "report", 2),
    ]  # fmt: skip
    assert rows(database, "SELECT drug FROM reports ORDER BY id") == [
        ("ZOLOFT",), ("sertraline; Wellbutrin",), (None,),
    ]  # fmt: skip


def test_a_report_of_the_future_or_of_1792_counts_in_signals_from_its_arrival_on(opened: Open) -> None:
    database = opened(write=True)
    far, near = datetime(2099, 1, 1, tzinfo=UTC), NOON + timedelta(hours=14)
    made = {"far": far, "near": near, "old": datetime(1792, 6, 1, tzinfo=UTC)}
    for place, (id_, at) in enumerate(made.items()):
        apply(database, message(place, report(id_, place, event(), created_at=at)))
    found = rows(database, "SELECT id, reported_at FROM reports ORDER BY id")
    noon = NOON.replace(tzinfo=None)
    assert found == [("far", noon), ("near", near.replace(tzinfo=None)), ("old", noon)]
    assert count(database, Population().within("7d", NOON + timedelta(days=1))).reports == 3
    assert rows(database, "SELECT created_at FROM reports WHERE id = 'far'") == [(far.replace(tzinfo=None),)]


def test_a_tombstone_deletes_a_report_and_a_stale_record_does_not_bring_it_back(opened: Open) -> None:
    database = opened(write=True)
    apply(database, message(0, report("a", 1, event())), message(1, report("b", 2, event())))
    apply(database, deletion(2, "a", 3), deletion(3, "never seen", 4))
    apply(database, message(4, report("a", 1, event())))
    assert [[row[0] for row in table] for table in contents(database)] == [["b"], ["b"], ["b"]]
    assert rows(database, "SELECT text, record_id FROM reports WHERE deleted") == [(None, None)] * 2
    apply(database, message(5, report("a", 5, event())))
    assert [row[0] for row in contents(database)[0]] == ["a", "b"]


def test_a_deletion_after_partitions_were_added_is_not_ignored_for_its_time(opened: Open) -> None:
    database = opened(write=True)
    apply(database, message(0, report("a", 900, event())), message(1, report("b", 901, event())))
    earlier = (NOON - timedelta(hours=2)).isoformat().encode()
    headers = ((ORIGIN, b"posts/5/3"), (RECEIVED_AT, earlier))
    apply(database, Inbound("events", 6, 0, b"a", None, 0.0, headers))
    assert [[row[0] for row in table] for table in contents(database)] == [["b"], ["b"], ["b"]]
    found = database.revisions(REPORTS, ["a", "b"])
    assert [found["reports", id_].deletes for id_ in "ab"] == [True, False]
    apply(database, message(2, report("a", 900, event())))
    assert [row[0] for row in contents(database)[0]] == ["b"]


def test_revisions_come_back_as_they_were_written(opened: Open) -> None:
    database = opened(write=True)
    made = report("a", 7, generations={"ner": 3}, releases={"ner": "0" * 12, "normalization": "1" * 12})
    no_place = report("b", 0, generations={})
    object.__setattr__(no_place, "origin", None)
    object.__setattr__(no_place, "received_at", None)
    apply(database, message(0, made), message(1, no_place))
    kept = database.revisions(REPORTS, ["a", "b", "c"])
    assert kept == {("reports", "a"): revision_of(made), ("reports", "b"): revision_of(no_place)}


@pytest.mark.parametrize("seed", range(3))
def test_in_whatever_order_and_batches_messages_arrive_the_tables_are_same(opened: Open, seed: int) -> None:
    made = [
        message(i, report(f"r{offset % 6}", offset, event(pt=("Nausea", "Insomnia")[offset % 2])))
        for i, offset in enumerate(range(30))
    ] + [deletion(30, "r3", 40), deletion(31, "r4", 3)]
    random.Random(seed).shuffle(made)
    database = opened(write=True)
    for start, end in pairwise([0, 4, 5, 19, len(made)]):
        apply(database, *made[start:end])
    reports, events, _ = contents(database)
    assert [row[:2] for row in reports] == [(f"r{i}", f"text {24 + i} of r{i}") for i in (0, 1, 2, 4, 5)]
    assert [row[::3] for row in events] == [(f"r{i}", ("Nausea", "Insomnia")[i % 2]) for i in (0, 1, 2, 4, 5)]


@pytest.mark.parametrize("generations", [{}, {"summarization": 7}, {"ner": 7}])
@pytest.mark.parametrize("order", [(0, 1, 0), (1, 0, 1)])
def test_a_question_keeps_its_events_and_its_short_form_in_whatever_order_they_arrive(
    opened: Open, generations: dict[str, int], order: tuple[int, ...]
) -> None:
    database, origin = opened(write=True), Origin("questions", 0, 0)
    summary = Summary(
        id="q", text="a question", source="questions", origin=origin, received_at=NOON,
        summary=ShortQuestion("short?", "abstractive", 0.5), releases={"summarization": "0" * 12},
        generations={n: g for n, g in generations.items() if n == "summarization"},
    )  # fmt: skip
    found = replace(
        report("q", 0, event(), source="questions"), origin=origin, releases={"ner": "1" * 12},
        generations={n: g for n, g in generations.items() if n == "ner"},
    )  # fmt: skip
    both = Inbound("summaries", 2, 9, b"q", encode(summary), 0.0), message(3, found)
    joined = "FROM reports r JOIN summaries s ON s.id = r.id JOIN events e ON e.report_id = r.id"
    sql = f"SELECT r.source, s.source, s.summary, e.pt {joined}"
    for number, i in enumerate(order):
        apply(database, both[i])
        assert number == 0 or rows(database, sql) == [("questions", "questions", "short?", "Nausea")]
    assert database.offsets() == {("summaries", 2): 10, ("events", 0): 4}
    headers = ((ORIGIN, b"questions/0/1"), (RECEIVED_AT, NOON.isoformat().encode()))
    apply(database, Inbound("events", 0, 4, b"q", None, 0.0, headers))
    assert rows(database, "SELECT deleted FROM reports") == [(True,)]
    apply(database, Inbound("summaries", 2, 10, b"q", None, 0.0, headers), *both)
    assert rows(database, "SELECT summary, deleted FROM summaries") == [(None, True)]
    assert rows(database, "SELECT text, deleted FROM reports") == [(None, True)]
    assert rows(database, "SELECT count(*) FROM events") == [(0,)]


def test_bytes_that_are_no_record_and_deletions_of_what_can_be_no_report_are_passed(opened: Open) -> None:
    database = opened(write=True)
    deletions = [deletion(i, id_, 1) for i, id_ in enumerate(("nul \0 byte", "x" * 257, LONG))]
    counts = apply(
        database, *deletions, Inbound("events", 0, 3, b"a", b"{", 0.0),
        Inbound("events", 0, 4, None, None, 0.0), Inbound("events", 0, 5, b"\xff", None, 0.0),
        message(6, report("a", 1)),
    )  # fmt: skip
    assert (counts["messages"], counts["unreadable"], counts["written"]) == (7, 5, 1)
    assert rows(database, "SELECT id, deleted FROM reports") == [("a", False)]
    assert database.offsets() == {("events", 0): 7}
