"""Candidate cases from the store, and the agreement of two readers."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from streams.codec import encode
from streams.records import CodedReport, Inbound, Review
from streams.reviews.agreement import Agreement, agree, kappa
from streams.reviews.cases import COLUMNS, CRITERIA, cases, csv_lines, json_lines
from streams.settings import Settings
from streams.store.database import Database
from streams.store.follow import Follower
from streams.store.opening import open_database
from tests.streams.store.messages import FOUND, event, message, report

AUTHOR = "a" * 64
MINE = {"author": AUTHOR, "permalink": "https://example.org/1"}


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = open_database(Settings(database=str(tmp_path / "events.duckdb")), write=True)
    yield opened
    opened.close()


def flags(database: Database, made: CodedReport) -> dict[str, bool]:
    Follower(Settings(), database).apply([message(0, made)])
    (case,) = [case for case in cases(database, undecided=True) if case["id"] == made.id]
    assert case["valid"] == all(case["criteria"].values())
    return dict(case["criteria"])


@pytest.mark.parametrize(
    ("made", "missing"),
    [
        (report("a", 1, event(), **MINE), set()),
        (report("a", 1, event()), {"reporter", "patient"}),
        (report("a", 1, event(other_experiencer=True), **MINE), {"patient"}),
        (report("a", 1, event(other_experiencer=True), text="text my little son", **MINE), set()),
        (report("a", 1, event(), text="text a 34 y/o woman"), {"reporter"}),
        (report("a", 1, event(negated=True), **MINE), {"patient", "drug", "event"}),
        (report("a", 1, event(pt=None), **MINE), {"event"}),
        (report("a", 1, replace(event(), drugs=()), **MINE), {"drug"}),
    ],
)
def test_the_four_criteria_are_flags(database: Database, made: CodedReport, missing: set[str]) -> None:
    assert flags(database, made) == {name: name not in missing for name in CRITERIA}


@pytest.mark.parametrize(
    ("words", "names_one"),
    [
        ("a rash after 2 weeks on it", False), ("been on it for 3 years", False), ("10 months in", False),
        ("1 year and 6 months later", False), ("the 5 day course", False), ("5-week-old boy", True),
        ("65 years old", True), ("a 65-year-old", True), ("65 yrs of age", True), ("a 34yo", True),
        ("72 year female", True), ("aged 81", True), ("a woman of 65 years", True), ("6 months old", True),
        ("7 mo old", True),
    ],
)  # fmt: skip
def test_an_age_names_a_patient_a_duration_not(database: Database, words: str, names_one: bool) -> None:
    made = report("a", 1, event(other_experiencer=True), text=f"text {words}", **MINE)
    assert flags(database, made)["patient"] == names_one


def decision(report_id: str, action: Any, **after: Any) -> Inbound:
    made = Review(
        sequence=int(report_id[-1]), report_id=report_id, start=0, end=4, fingerprint="", reviewer="ann",
        decided_at=datetime.now(UTC), action=action, before=FOUND,
        after=replace(FOUND, review=action, **after),
    )  # fmt: skip
    return Inbound("reviews", 0, int(report_id[-1]), report_id.encode(), encode(made), 0.0)


def test_a_case_has_what_reviewers_decided_and_nothing_that_they_rejected(database: Database) -> None:
    made = [report(f"r{i}", i, event(), text="=text, a", language="en", **MINE) for i in range(4)]
    Follower(Settings(), database).apply([
        *(message(i, one) for i, one in enumerate(made)),
        decision("r1", "accept"),
        decision("r2", "correct", pt="Insomnia", drugs=("lithium", "zinc")),
        decision("r3", "reject"),
    ])  # fmt: skip
    found = [json.loads(line) for line in json_lines(cases(database))]
    assert [case["id"] for case in found] == ["r1", "r2"]
    assert [case["id"] for case in cases(database, undecided=True)] == ["r0", "r1", "r2"]
    assert (found[1]["events"][0]["pt"], found[1]["events"][0]["drugs"]) == ("Insomnia", ["lithium", "zinc"])
    assert found[1]["valid"] and found[1]["decided"] and "not an E2B message" in found[1]["note"]
    head, *lines = csv.reader(csv_lines(cases(database)))
    assert tuple(head) == COLUMNS and len(lines) == 2
    row = dict(zip(head, lines[1], strict=True))
    assert (row["drugs"], row["terms"], row["valid"]) == ("lithium; zinc", "Insomnia", "true")
    assert row["text"] == "'=text, a"  # no formula
    bare = next(cases(database, texts=False))
    assert (bare["text"], bare["permalink"]) == (None, None)


def test_a_carriage_return_in_a_text_begins_no_line_and_no_cell(database: Database) -> None:
    made = report("a", 1, event(), text="text\r=cmd|'/c calc'!A1", **MINE)
    Follower(Settings(), database).apply([message(0, made)])
    _, line = csv_lines(cases(database, undecided=True))
    assert f'"{made.text}"' in line and line.endswith("\n") and not line.endswith("\r\n")


@pytest.mark.parametrize("sign", ["\n=", "\uff1d", "\uff0b", "\uff0d", "\uff20"])
def test_a_text_that_a_spreadsheet_may_read_as_formula_has_apostrophe(database: Database, sign: str) -> None:
    Follower(Settings(), database).apply([message(0, report("a", 1, event(), text=f"{sign}1+1", **MINE))])
    head, row = csv.reader(csv_lines(cases(database, undecided=True)))
    assert dict(zip(head, row, strict=True))["text"] == f"'{sign}1+1"


@pytest.mark.parametrize(
    ("table", "agreed", "expected"),
    [
        ({"aa": 20, "ab": 5, "ba": 10, "bb": 15}, 0.7, 0.4),
        ({"aa": 45, "ab": 15, "ba": 25, "bb": 15}, 0.6, 0.1304),
        ({"aa": 25, "ab": 35, "ba": 5, "bb": 35}, 0.6, 0.2593),
        ({"aa": 3}, 1.0, None),
    ],
)
def test_kappa_of_known_tables(table: dict[str, int], agreed: float, expected: float | None) -> None:
    answers = [(pair[0], pair[1]) for pair, n in table.items() for _ in range(n)]
    assert kappa(answers) == Agreement(sum(table.values()), agreed, expected)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ({"review": "accept"}, {"review": "correct"}, True),
        ({"review": "accept"}, {"review": "reject"}, False),
        ({"review": "reject", "negated": True}, {"review": "reject"}, True),
        ({"review": "accept"}, {"review": "correct", "pt": "Vomiting"}, False),
        ({"review": "correct", "start": 3, "end": 9}, {"review": "accept"}, False),
        ({"review": "correct", "drugs": ("a", "b")}, {"review": "correct", "drugs": ("b", "a")}, True),
    ],
)
def test_readings_agree_by_what_they_say(one: dict[str, Any], other: dict[str, Any], expected: bool) -> None:
    states = [replace(FOUND, **changes) for changes in (one, other)]
    assert agree(*states) is expected
