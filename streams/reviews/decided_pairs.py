"""Pairs of a drug and an effect of clinical sentences that reviewers decided, from their decisions on events.

A rejected event is unrelated to every drug. One whose drugs were corrected is related to these, and to no
other; any other one is related to those that the models related it to. A denied or feared event says nothing
of a relation.
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


def decided_pairs(readings: Mapping[Place, Readings], database: Database) -> list[DecidedPair]:
    """The pairs of all valid decisions in the order of these, without disputed ones and those on a report
    that was deleted, has another text by now, or none. Raises DatabaseError.
    """
    valid = {place: own.resolution or own.first for place, own in readings.items() if not own.is_disputed}
    reviews = {place: review for place, review in valid.items() if review}
    rows = {row["id"]: row for row in rows_of(database, COLUMNS, "reports WHERE id", {p[0] for p in reviews})}
    found = [
        pair
        for place, review in reviews.items()
        if place[0] in rows
        for pair in _pairs(rows[place[0]], place, review)
    ]
    return sorted(found, key=lambda pair: pair.review.sequence)


def _pairs(report: Mapping[str, Any], place: Place, review: Review) -> Iterator[DecidedPair]:
    text, after, is_rejected = report["text"], review.after, review.after.review == REJECT
    is_same = fingerprint(report["record_id"]) == place[3] and not report["deleted"]
    start, end = place[1:3] if after.start is None or after.end is None else (after.start, after.end)
    if not text or not is_same or end > len(text) or STAGE not in orjson.loads(report["releases"] or "{}"):
        return
    if (after.negated or after.hypothetical) and not is_rejected:
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
