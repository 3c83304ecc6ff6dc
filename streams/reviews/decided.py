"""What reviewers decided of pairs of a drug and an effect in clinical sentences, and of the words of effects,
from their decisions on events.

A rejected event is unrelated to every drug. One whose drugs were corrected is related to these, and to no
other; any other one is related to those that the models related it to. A denied or feared event says nothing
of a relation. The words of an event that was kept have its code, or none that fits where it is NIL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from models.rules.sentences import whole_sentences
from models.types import ADE, DRUG, Mention
from streams.records import Review
from streams.reviews.agreement import Readings
from streams.reviews.log import Place
from streams.store.database import Database
from streams.store.decisions import fingerprint
from streams.store.repeats import rows_of

STAGE, REJECT = "relation", "reject"
COLUMNS = ("id", "text", "mentions", "record_id", "releases", "deleted")


@dataclass(frozen=True, slots=True)
class DecidedPair:
    """A pair in its text, and the decision on it."""

    text: str
    drug: Mention
    effect: Mention
    related: bool
    review: Review


@dataclass(frozen=True, slots=True)
class DecidedCode:
    """An effect in its text, and the decision on its code."""

    text: str
    effect: Mention
    mentions: tuple[Mention, ...]
    """all of the text, in order, the effect among them"""
    clinical: bool
    review: Review


def decided_pairs(readings: Mapping[Place, Readings], database: Database) -> list[DecidedPair]:
    """The pairs of all valid decisions in the order of these, without disputed ones and those on a report
    that was deleted, has another text by now, or none. Raises DatabaseError.
    """
    found = [
        pair for report, place, review in _valid(readings, database) for pair in _pairs(report, place, review)
    ]
    return sorted(found, key=lambda pair: pair.review.sequence)


def decided_codes(readings: Mapping[Place, Readings], database: Database) -> list[DecidedCode]:
    """The effects of all valid decisions by which an event was kept, as `decided_pairs`."""
    found = [
        _code(report, place, review)
        for report, place, review in _valid(readings, database)
        if review.after.review != REJECT
    ]
    return sorted(found, key=lambda code: code.review.sequence)


def _valid(
    readings: Mapping[Place, Readings], database: Database
) -> Iterator[tuple[Mapping[str, Any], Place, Review]]:
    """The valid decisions on events in texts that are as they were read, with the rows of their reports."""
    valid = {place: own.resolution or own.first for place, own in readings.items() if not own.is_disputed}
    reviews = {place: review for place, review in valid.items() if review}
    rows = {row["id"]: row for row in rows_of(database, COLUMNS, "reports WHERE id", {p[0] for p in reviews})}
    for place, review in reviews.items():
        report = rows.get(place[0])
        if report is None or not report["text"] or report["deleted"]:
            continue
        is_same = fingerprint(report["record_id"]) == place[3]
        if is_same and _span(place, review)[1] <= len(report["text"]):
            yield report, place, review


def _span(place: Place, review: Review) -> tuple[int, int]:
    after = review.after
    return place[1:3] if after.start is None or after.end is None else (after.start, after.end)


def _is_clinical(report: Mapping[str, Any]) -> bool:
    return STAGE in orjson.loads(report["releases"] or "{}")


def _code(report: Mapping[str, Any], place: Place, review: Review) -> DecidedCode:
    text, (start, end) = report["text"], _span(place, review)
    effect = Mention(start, end, text[start:end], ADE, 1.0)
    stored = [
        Mention(m["start"], m["end"], text[m["start"] : m["end"]], m["label"], 1.0)
        for m in orjson.loads(report["mentions"] or "[]")
        if (m["start"], m["end"]) != place[1:3]
    ]
    mentions = sorted([*stored, effect], key=lambda m: m.start)
    return DecidedCode(text, effect, tuple(mentions), _is_clinical(report), review)


def _pairs(report: Mapping[str, Any], place: Place, review: Review) -> Iterator[DecidedPair]:
    text, after, is_rejected = report["text"], review.after, review.after.review == REJECT
    start, end = _span(place, review)
    if not _is_clinical(report) or ((after.negated or after.hypothetical) and not is_rejected):
        return
    stored = orjson.loads(report["mentions"] or "[]")
    named = _found(stored, place) if after.drugs is None else map(_key, after.drugs)
    related = set[str]() if is_rejected else set(named)
    effect = Mention(start, end, text[start:end], ADE, 1.0)
    within = next((s for s in whole_sentences(text) if s.start <= start < s.end), effect)
    drugs = [
        Mention(m["start"], m["end"], text[m["start"] : m["end"]], DRUG, 1.0, m["generic"])
        for m in stored
        if m["label"] == DRUG and within.start <= m["start"] < within.end
    ]
    seen = set[str]()
    # Of several mentions of a drug the nearest one has caused the effect; the others decide nothing.
    for drug in sorted(drugs, key=lambda drug: max(drug.start - end, start - drug.end)):
        name = _key(drug.generic or drug.text)
        is_first = name not in seen
        seen.add(name)
        if name in related and is_first:
            yield DecidedPair(text, drug, effect, True, review)
        elif name not in related and (is_rejected or after.drugs is not None):
            yield DecidedPair(text, drug, effect, False, review)


def _found(stored: Sequence[Mapping[str, Any]], place: Place) -> set[str]:
    """The drugs that the models related to the event."""
    own = (mention for mention in stored if (mention["start"], mention["end"]) == place[1:3])
    return {_key(reason["drug"]) for mention in own for reason in mention.get("reasons", ())}


def _key(drug: str) -> str:
    return " ".join(drug.lower().split())
