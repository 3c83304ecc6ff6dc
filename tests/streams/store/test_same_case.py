"""Reports with the same text are one, and similar ones where what was coded in them agrees."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from models.types import Mention
from streams.records import CodedReport
from streams.store.database import Database
from streams.store.same_case import group_of
from tests.streams.store.conftest import Open
from tests.streams.store.messages import deletion, event, message, report
from tests.streams.store.test_contract import apply, rows

FIRST = report("a", 1, event(), author="0" * 64)
SIMILAR = replace(FIRST, id="b", similar_to="a")
DRUG = Mention(0, 4, "Text", "DRUG", 0.9)


@pytest.mark.parametrize(
    ("changed", "is_same"),
    [
        ({}, True),
        ({"text": "text, so true!"}, True),
        ({"events": (event(), event())}, True),
        ({"language": "en", "country": "NL", "created_at": None}, True),
        ({"mentions": (*FIRST.mentions, replace(DRUG, generic="sertraline"))}, True),
        ({"drug": "Sertraline"}, True),
        ({"events": (event("fluoxetine"),)}, False),
        ({"events": (event(pt="Insomnia"),)}, False),
        ({"events": (event(), event(pt="Insomnia"))}, False),
        ({"events": (event(), event(pt=None))}, False),
        ({"events": (event(negated=True),)}, False),
        ({"events": (event(hypothetical=True),)}, False),
        ({"events": (event(other_experiencer=True),)}, False),
        ({"mentions": (*FIRST.mentions, replace(DRUG, generic="lithium"))}, False),
        ({"mentions": (*FIRST.mentions, DRUG)}, False),
        ({"drug": "lithium"}, False),
        ({"author": "1" * 64}, False),
        ({"author": None}, False),
        ({"similar_to": None}, False),
        ({"similar_to": "c"}, False),
    ],
)
def test_similar_reports_are_one_where_their_content_agrees(changed: dict[str, Any], is_same: bool) -> None:
    assert (group_of(replace(SIMILAR, **changed)) == group_of(FIRST)) == is_same


def test_where_nothing_was_coded_only_added_words_make_no_other_case() -> None:
    first, similar = replace(FIRST, events=()), replace(SIMILAR, events=())
    assert group_of(similar) == group_of(first)
    assert group_of(replace(similar, reworded=True)) not in (group_of(first), group_of(similar))
    assert group_of(replace(SIMILAR, reworded=True)) == group_of(FIRST)
    assert group_of(similar) != group_of(SIMILAR)


def groups(database: Database) -> dict[str, set[str]]:
    """The ids of the reports of each group, by the least of them."""
    found: dict[str, set[str]] = {}
    for id_, group in rows(database, "SELECT id, report_group FROM reports WHERE NOT deleted ORDER BY id"):
        found.setdefault(group, set()).add(id_)
    joined = "reports r JOIN pairs p ON p.report_id = r.id"
    assert rows(database, f"SELECT id FROM {joined} WHERE p.report_group <> r.report_group") == []
    return {min(ids): ids for ids in found.values()}


def records() -> list[CodedReport]:
    """Of two texts and their reposts, of which models found other things, and of texts that are like them."""
    return [
        report("a", 1, event()), report("a repeat", 2, event(), event(pt="Insomnia"), duplicate_of="a"),
        report("a cut", 3, duplicate_of="a"), report("a like", 4, event(), similar_to="a"),
        report("a unlike", 5, event("lithium"), similar_to="a"),
        report("like repeat", 6, event("zinc"), duplicate_of="a like"),
        report("z", 7, event()), report("z repeat", 8, event("zinc"), duplicate_of="z"),
        report("lost repeat", 9, event(), duplicate_of="never seen"),
        report("lost again", 10, event("zinc"), duplicate_of="never seen"),
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_the_groups_are_same_in_whatever_order_and_batches_reports_arrive(opened: Open, seed: int) -> None:
    anew = replace(records()[0], events=(event("lithium"),), generations={"ner": 1})
    made = [*records(), anew, report("z", 11, event("zinc"))]
    messages = [*(message(i, one) for i, one in enumerate(made)), deletion(20, "a like", 30)]
    random.Random(seed).shuffle(messages)
    database = opened(write=True)
    for start, end in pairwise([0, 3, 4, 9, len(messages)]):
        apply(database, *messages[start:end])
    assert groups(database) == {
        "a": {"a", "a repeat", "a cut", "a unlike"}, "like repeat": {"like repeat"}, "z": {"z", "z repeat"},
        "lost again": {"lost again", "lost repeat"},
    }  # fmt: skip


def test_repeats_follow_their_first_report(opened: Open) -> None:
    database = opened(write=True)
    apply(database, *(message(i, made) for i, made in enumerate(records())))
    before = {
        "a": {"a", "a cut", "a like", "a repeat", "like repeat"}, "a unlike": {"a unlike"},
        "lost again": {"lost again", "lost repeat"}, "z": {"z", "z repeat"},
    }  # fmt: skip
    assert groups(database) == before
    sql = "SELECT drug, pt FROM pairs WHERE report_id = 'a repeat' ORDER BY pt"
    pairs = rows(database, sql)
    coded_anew = replace(records()[0], events=(event("lithium"),), generations={"ner": 1})
    apply(database, message(20, coded_anew))
    moved = {"a": {"a", "a cut", "a repeat", "a unlike"}, "a like": {"a like", "like repeat"}}
    assert groups(database) == moved | {name: before[name] for name in ("z", "lost again")}
    apply(database, deletion(21, "a", 40))
    alone = {"a cut": {"a cut", "a repeat"}, "a unlike": {"a unlike"}, "a like": moved["a like"]}
    assert groups(database) == alone | {name: before[name] for name in ("z", "lost again")}
    assert rows(database, sql) == pairs == [("sertraline", "Insomnia"), ("sertraline", "Nausea")]
