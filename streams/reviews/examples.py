"""Decisions as training data, and as gold: reports of which every event is decided, with their marks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import orjson

from models.types import CODED_LABELS, DRUG
from streams.store.database import Database
from streams.store.rows import REJECTED

REPORT = ("id", "text", "mentions")
EVENT = (
    "span_start", "span_end", "label", "llt", "pt", "negated", "hypothetical", "other_experiencer", "drugs",
    "review",
)  # fmt: skip
#: Label of a mention that is no event.
NONE = "NONE"
#: Columns of an event to the flag of its mark, the first that is set.
FLAGS = {"negated": "negated", "hypothetical": "hypothetical", "other_experiencer": "other"}


def example_lines(database: Database) -> Iterator[bytes]:
    """A line for each report with a text of which every event has a valid decision; `training ner` and
    `training normalization` read them. Raises DatabaseError.
    """
    columns = ", ".join([*(f"r.{name}" for name in REPORT), *(f"e.{name}" for name in EVENT)])
    sql = (
        f"SELECT {columns} FROM reports r JOIN events e ON r.id = e.report_id "
        "WHERE r.text IS NOT NULL ORDER BY r.id, e.position"
    )
    names, rows = database.query(sql)
    found = (dict(zip([*REPORT, *EVENT], row, strict=True)) for row in rows)
    assert len(names) == len(REPORT) + len(EVENT)
    for _, of_report in groupby(found, key=lambda row: row["id"]):
        events = list(of_report)
        if all(event["review"] for event in events):
            marks = sorted(_marks(events), key=lambda mark: int(mark["start"]))
            yield orjson.dumps({"id": events[0]["id"], "text": events[0]["text"], "marks": marks}) + b"\n"


def _marks(events: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The events as they were decided, and the other mentions as the models found them, without overlap."""
    taken: list[tuple[int, int]] = []
    drugs = [m for m in orjson.loads(events[0]["mentions"] or "[]") if m["label"] == DRUG]
    numbers = {i: m["generic"] for i, m in enumerate(drugs, 1) if m["generic"]}
    for event in events:
        if _is_free(event["span_start"], event["span_end"], taken):
            taken.append((event["span_start"], event["span_end"]))
            yield _mark(event, [i for i, name in numbers.items() if name in orjson.loads(event["drugs"])])
    for number, mention in enumerate(drugs, 1):
        if _is_free(mention["start"], mention["end"], taken):
            taken.append((mention["start"], mention["end"]))
            yield _other(mention) | {"numbers": [number]}
    for mention in orjson.loads(events[0]["mentions"] or "[]"):
        if mention["label"] not in {DRUG, *CODED_LABELS} and _is_free(
            mention["start"], mention["end"], taken
        ):
            taken.append((mention["start"], mention["end"]))
            yield _other(mention)


def _mark(event: Mapping[str, Any], numbers: Sequence[int]) -> dict[str, Any]:
    place = {"start": event["span_start"], "end": event["span_end"]}
    if event["review"] == REJECTED:
        return place | {"label": NONE, "flag": None, "term": None, "numbers": []}
    flag = next((flag for column, flag in FLAGS.items() if event[column]), None)
    term = event["llt"] or event["pt"]
    return place | {"label": event["label"], "flag": flag, "term": term, "numbers": list(numbers)}


def _other(mention: Mapping[str, Any]) -> dict[str, Any]:
    place = {"start": mention["start"], "end": mention["end"]}
    return place | {"label": mention["label"], "flag": None, "term": None, "numbers": []}


def _is_free(start: int, end: int, taken: Sequence[tuple[int, int]]) -> bool:
    return not any(start < e and s < end for s, e in taken)


def gold_lines(database: Database) -> Iterator[bytes]:
    """A line for each report of which every event has a valid decision: the events that were not rejected.
    Events that the models missed are not in this gold.
    """
    sql = "SELECT report_id, span_start, span_end, pt, review FROM events ORDER BY report_id, position"
    for id_, found in groupby(database.query(sql)[1], key=lambda row: row[0]):
        events = list(found)
        if all(review is not None for *_, review in events):
            kept = [
                {"start": start, "end": end, "pt": pt}
                for _, start, end, pt, review in events
                if review != REJECTED
            ]
            line: dict[str, Any] = {"id": id_, "events": kept}
            yield orjson.dumps(line) + b"\n"
