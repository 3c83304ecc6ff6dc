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

from models.case_fields.fields import case_fields
from models.types import DRUG, INDICATION, CaseField, Mention
from streams.codec import encode
from streams.records import CodedReport, Inbound, Review
from streams.reviews.agreement import Agreement, agree, kappa
from streams.reviews.cases import COLUMNS, CRITERIA, by_completeness, cases, csv_lines, drafts, json_lines
from streams.reviews.completeness import PENALTIES, completeness
from streams.settings import Settings
from streams.store.database import Database
from streams.store.follow import Follower
from streams.store.open_database import open_database
from tests.streams.store.messages import FOUND, event, message, report

AUTHOR = "a" * 64
AGE = case_fields("text a 34 y/o woman", ())
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
        (report("a", 1, event(), text="text a 34 y/o woman", case_fields=AGE), {"reporter"}),
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
    text = f"text {words}"
    made = report("a", 1, event(other_experiencer=True), text=text, case_fields=case_fields(text, ()), **MINE)
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


TEXT = (
    "I am 45F. 3 weeks after starting 20 mg Zoloft for gloom I had rash, and zinc. It, the Rash, went away."
)
STATED = {
    "age": ("45", "45"), "sex": ("F", "female"), "onset": ("3 weeks", "P3W"), "dose": ("20 mg", "20 mg"),
    "outcome": ("went away", "recovered"), "dechallenge": ("It, the", "positive"),
    "serious": ("rash", "death"),
}  # fmt: skip


REPEATED = "G.k.9.i.4 recurrence on readministration"


def named(words: str, label: str, generic: str | None = None) -> Mention:
    return Mention(TEXT.index(words), TEXT.index(words) + len(words), words, label, 0.9, generic)


def whole(id_: str = "a", **fields: Any) -> CodedReport:
    """A report that states everything."""
    found = [CaseField(f, TEXT.index(w), TEXT.index(w) + len(w), v, 0.9) for f, (w, v) in STATED.items()]
    mentions = (
        named("rash", "ADE"), named("Zoloft", DRUG, "sertraline"), named("gloom", INDICATION),
        named("zinc", DRUG, "zinc"), named("Rash", INDICATION),
    )  # fmt: skip
    return report(
        id_, 1, event(serious=True), text=TEXT, mentions=mentions,
        **{"case_fields": tuple(found), "country": "NL"} | MINE | fields,
    )  # fmt: skip


def test_an_effect_of_which_somebody_died_is_fatal_whatever_else_became_of_it(database: Database) -> None:
    left = tuple(field for field in whole().case_fields if field.field != "serious")
    Follower(Settings(), database).apply([message(0, whole()), message(1, whole("b", case_fields=left))])
    found = [json.loads(line)["E.i"] for line in drafts(cases(database, undecided=True))]
    assert [reaction["E.i.7"] for (reaction,) in found] == ["5", "1"]


def test_a_draft_has_the_elements_of_e2b_and_what_is_missing_is_named(database: Database) -> None:
    bare = report("b", 2, event(pt=None), text="text of b")
    Follower(Settings(), database).apply([message(0, whole()), message(1, bare)])
    full, poor = (json.loads(line) for line in drafts(cases(database, undecided=True)))
    assert (
        "DRAFT" in full["draft"]
        and full["missing"] == []
        and {"C.3 sender", REPEATED} < {*full["to_complete"]}
    )
    assert full["C.1"]["C.1.1"] == "DRAFT-a" and full["C.2.r"] == [{"C.2.r.3": "NL", "C.2.r.4": None}]
    assert full["D"] == {
        "D.1": "MSK", "D.2.2a": 45.0, "D.2.2b": "a", "D.2.3": None, "D.5": "2", "D.7.2": None,
    }  # fmt: skip
    (reaction,) = full["E.i"]
    assert reaction["E.i.1.1a"] == "rash" and reaction["E.i.2.1"] == "Nausea" and reaction["E.i.7"] == "5"
    assert [reaction[f"E.i.3.2{letter}"] for letter in "abcdef"] == [True, *[False] * 4, True]
    suspect, other = full["G.k"]
    assert (suspect["G.k.1"], suspect["G.k.2.2"], suspect["G.k.7.r.1"]) == ("1", "sertraline", ["gloom"])
    assert (suspect["G.k.4.r"]["G.k.4.r.1a"], suspect["G.k.4.r"]["G.k.4.r.1b"]) == (20.0, "mg")
    assert (suspect["G.k.9.i.3.1a"], suspect["G.k.9.i.3.1b"], suspect["G.k.8"]) == (3.0, "wk", "1")
    assert (other["G.k.1"], other["G.k.2.2"], other["G.k.4.r"]["G.k.4.r.1a"]) == ("2", "zinc", None)
    assert full["H"]["H.1"] == TEXT
    assert poor["missing"] == [
        "C.2.r identifiable reporter", "D identifiable patient", "E.i.2.1 reaction",
    ]  # fmt: skip
    assert poor["C.2.r"] == [] and poor["D"]["D.1"] is None and poor["G.k"][0]["G.k.8"] == "0"
    hidden = next(iter(drafts(cases(database, undecided=True, texts=False))))
    assert "gloom" not in hidden and "45F" not in hidden and "example.org" not in hidden


def test_cases_are_sorted_by_completeness_and_csv_has_their_fields(database: Database) -> None:
    made = [whole("b", case_fields=()), whole("a", case_fields=(), country=None), whole("c")]
    Follower(Settings(), database).apply([message(i, one) for i, one in enumerate(made)])
    found = by_completeness(cases(database, undecided=True))
    assert [(case["id"], case["completeness"]) for case in found] == [("c", 1.0), ("b", 0.154), ("a", 0.139)]
    assert found[1]["incomplete"] == ["onset", "outcome", "sex", "age", "dose"]
    head, row, *_ = csv.reader(csv_lines(found))
    cells = dict(zip(head, row, strict=True))
    assert [cells[name] for name in ("age", "sex", "dose", "onset", "seriousness", "co_medication")] == [
        "45", "female", "20 mg", "P3W", "death", "zinc",
    ]  # fmt: skip
    assert (cells["missing"], cells["incomplete"], cells["completeness"]) == ("", "", "1.0")


@pytest.mark.parametrize(
    ("changed", "score"),
    [
        ({}, 1.0), ({"age": ["40..49"]}, 0.9), ({"age": ["4", "45"]}, 0.9), ({"age": []}, 0.7),
        ({"age": [], "age_group": ["child"]}, 0.9), ({"onset": [None]}, 0.7), ({"onset": []}, 0.5),
        ({"onset": [None, "P3W"]}, 1.0), ({"sex": ["male", "female"]}, 0.7), ({"dose": []}, 0.9),
        ({"outcome": []}, 0.7),
    ],
)  # fmt: skip
def test_completeness_is_what_the_penalties_of_vigigrade_leave(changed: Any, score: float) -> None:
    fields = {"age": ["45"], "sex": ["male"], "onset": ["P3W"], "dose": ["20 mg"], "outcome": ["recovered"]}
    case = {
        "fields": fields | changed,
        "indications": ["gloom"],
        "country": "NL",
        "criteria": {"reporter": True},
    }
    assert completeness(case)[0] == score
    assert set(completeness(case)[1]) <= set(PENALTIES)


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
