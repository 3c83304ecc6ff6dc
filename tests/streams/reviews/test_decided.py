"""Which pairs of a drug and an effect decisions on events decide, and how."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streams.records import CodedReport, Review
from streams.reviews.agreement import Readings
from streams.reviews.decided import decided_codes, decided_pairs
from streams.reviews.log import Place, place_of
from streams.settings import Settings
from streams.store.database import Database
from streams.store.open_database import open_database
from tests.streams.rollout.reviewing import WARFARIN, coded, decision
from tests.streams.web.conftest import fill

Decided = list[tuple[str, str, bool]]


def made(action: str, **fields: Any) -> Review:
    return decision("r-warfarin", action, **fields)


def both(related: bool) -> Decided:
    return [("phenytoin", "rash", related), ("warfarin", "rash", related)]


CORRECTED: Decided = [("phenytoin", "rash", True), ("warfarin", "rash", False)]
START = WARFARIN.index("fewer strokes")


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[Any]:
    """A function that gives a database with some reports."""
    opened: list[Database] = []

    def of(*reports: CodedReport) -> Database:
        fill(tmp_path / "events.duckdb", list(reports))
        opened.append(open_database(Settings(database=str(tmp_path / "events.duckdb"))))
        return opened[-1]

    yield of
    for database in opened:
        database.close()


def pairs(database: Database, *reviews: Review) -> Decided:
    readings: dict[Place, Readings] = {}
    for sequence, review in enumerate(reviews):
        own = readings.setdefault(place_of(review), Readings(review.before))
        own.take(replace(review, sequence=sequence))
    found = decided_pairs(readings, database)
    return sorted((pair.drug.text, pair.effect.text, pair.related) for pair in found)


@pytest.mark.parametrize(
    ("reviews", "expected"),
    [
        ([made("accept")], both(True)),
        ([made("reject")], both(False)),
        ([made("correct", drugs=("phenytoin",))], CORRECTED),
        ([made("correct", drugs=("Phenytoin ",))], CORRECTED),
        ([made("correct", drugs=())], both(False)),
        ([made("correct", drugs=("ibuprofen",))], both(False)),
        ([made("correct", llt="Rash", pt="Rash")], both(True)),
        ([made("accept"), made("reject")], both(False)),
        ([made("correct", drugs=("phenytoin",), start=START, end=START + 13)],
         [("phenytoin", "fewer strokes", True), ("warfarin", "fewer strokes", False)]),
        ([made("accept"), made("reject", reading=2, reviewer="bob"), made("reject", reading=3)], both(False)),
        ([made("accept"), made("accept", reading=2, reviewer="bob")], both(True)),
        ([made("reject", negated=True)], both(False)),
        ([made("accept", other_experiencer=True)], both(True)),
        # What decides nothing.
        ([made("accept", negated=True)], []),
        ([made("accept", hypothetical=True)], []),
        ([made("accept"), made("undo")], []),
        ([made("accept"), made("reject", reading=2, reviewer="bob")], []),
        ([made("reject", reading=2)], []),
        ([made("correct", drugs=("phenytoin",), start=5, end=900)], []),
        ([replace(made("accept"), fingerprint="of another text")], []),
        ([replace(made("accept"), report_id="unknown")], []),
        ([], []),
    ],
)  # fmt: skip
def test_a_decision_on_an_event_decides_its_pairs(
    filled: Any, reviews: list[Review], expected: Decided
) -> None:
    assert pairs(filled(coded("r-warfarin")), *reviews) == expected


@pytest.mark.parametrize(
    "changes",
    [{"releases": {"ner": "0" * 12}}, {"text": ""}, {"mentions": (), "relations": (), "events": ()}],
)
def test_posts_and_reports_without_text_or_mentions_have_none(filled: Any, changes: dict[str, Any]) -> None:
    assert pairs(filled(replace(coded("r-warfarin"), **changes)), made("reject")) == []


def test_an_accepted_event_without_a_relation_says_nothing_of_drugs(filled: Any) -> None:
    database = filled(coded("r-missed"))
    assert pairs(database, decision("r-missed", "accept")) == []
    named = decision("r-missed", "correct", drugs=("cisplatin",))
    assert pairs(database, named) == [("cisplatin", "UTI", True)]


def test_of_the_mentions_of_a_drug_in_the_sentence_the_nearest_has_caused_the_effect(filled: Any) -> None:
    text = "Phenytoin was given. Phenytoin level was low; rash was seen after starting phenytoin."
    one = coded("r-warfarin")
    effect, _, drug = one.mentions
    places = [i for i in range(len(text)) if text[i:].lower().startswith("phenytoin")]
    place = text.index("rash")
    named = [replace(drug, start=i, end=i + 9, text=text[i : i + 9]) for i in places]
    mentions = (*named, replace(effect, start=place, end=place + 4))
    relation = replace(one.relations[0], head=2, tail=3)
    event = replace(one.events[0], mention=3)
    database = filled(replace(one, text=text, mentions=mentions, relations=(relation,), events=(event,)))
    found = {}
    for action in ("accept", "reject"):
        review = replace(made(action), start=place, end=place + 4)
        readings = {place_of(review): Readings(review.before, review)}
        found[action] = [(p.drug.start, p.related) for p in decided_pairs(readings, database)]
    assert found["accept"] == [(places[1], True)]
    assert sorted(found["reject"]) == [(places[1], False), (places[2], False)]


def codes(database: Database, *reviews: Review) -> list[tuple[str, str | None]]:
    readings = {place_of(r): Readings(r.before, replace(r, sequence=i)) for i, r in enumerate(reviews)}
    return [(code.effect.text, code.review.after.pt) for code in decided_codes(readings, database)]


def test_the_words_of_an_event_that_was_kept_have_its_code(filled: Any) -> None:
    database = filled(*map(coded, ("r-warfarin", "r-missed", "r-short")))
    made_ = [
        decision("r-short", "correct", pt=None, llt=None),
        made("correct", pt="Drug eruption", negated=True, start=START, end=START + 13),
        decision("r-missed", "reject"),
    ]
    assert codes(database, *made_) == [("Hepatotoxicity", None), ("fewer strokes", "Drug eruption")]
    (code, _) = decided_codes({place_of(r): Readings(r.before, r) for r in made_}, database)
    assert (code.clinical, [m.text for m in code.mentions]) == (True, ["Hepatotoxicity", "INH", "rifampicin"])
    assert codes(database, replace(made("accept"), fingerprint="of another text")) == []


def test_the_words_of_posts_have_codes_too(filled: Any) -> None:
    database = filled(replace(coded("r-warfarin"), releases={"ner": "0" * 12}))
    assert codes(database, made("accept")) == [("rash", "Nausea")]
