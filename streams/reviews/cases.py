"""Candidate cases: reports with the four criteria of a valid report as flags, for a person to assess."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import orjson

from streams.store.csv_line import csv_line, no_formula
from streams.store.database import Database
from streams.store.rows import REJECTED
from streams.store.tables import quoted

Case = dict[str, Any]
#: Stands with every case.
NOTE = "candidate, not assessed by a qualified person; not an E2B message"
REPORT = (
    "id", "reported_at", "source", "language", "permalink", "author_known", "duplicate_of", "report_group",
    "record_id", "text",
)  # fmt: skip
EVENT = (
    "span_start", "span_end", "llt", "pt", "soc", "serious", "negated", "hypothetical", "other_experiencer",
    "drugs", "drug_evidence", "review",
)  # fmt: skip
CRITERIA = ("reporter", "patient", "drug", "event")
#: Columns of CSV.
COLUMNS = (
    "id", "reported_at", "source", "language", "permalink", "repeats", "group", *CRITERIA, "valid",
    "decided", "serious", "drugs", "terms", "text", "note",
)  # fmt: skip
#: Words by which a text names a patient other than its writer: an age, or a relative.
PERSON = re.compile(
    r"\b\d{1,3}[\s-]*(?:(?:years?|yrs?|months?|mos?|weeks?|wks?|days?)[\s-]*(?:old|of[\s-]age|"
    r"(?:fe)?male|(?:wo)?man|girl|boy|infant|baby|child|patient)|y/?o|m/o)\b|"
    r"\bage[ds]?:?\s*\d{1,3}\b|\b(?:man|woman|girl|boy|patient|male|female) of \d{1,3} (?:years?|months?)\b|"
    r"\bmy (?:\w+ )?(?:mother|mom|mum|father|dad|wife|husband|partner|girlfriend|boyfriend|son|daughter|"
    r"child|kid|baby|toddler|brother|sister|grand\w+|aunt|uncle|cousin|niece|nephew|patient)\b",
    re.IGNORECASE,
)


def cases(
    database: Database, *, undecided: bool = False, texts: bool = True, id_: str | None = None
) -> Iterator[Case]:
    """A case for each report with an event that a reviewer has kept; with `undecided` also for those of which
    nobody has decided an event. Rejected events are left out. Raises DatabaseError.
    """
    columns = ", ".join([*(f"r.{name}" for name in REPORT), *(f"e.{name}" for name in EVENT)])
    joined = "reports r JOIN events e ON r.id = e.report_id"
    where = "" if id_ is None else f"WHERE r.id = {quoted(id_)}"
    names, rows = database.query(f"SELECT {columns} FROM {joined} {where} ORDER BY r.id, e.position")
    found = (dict(zip(names, row, strict=True)) for row in rows)
    for _, of_report in groupby(found, key=lambda row: row["id"]):
        events = [row for row in of_report if row["review"] != REJECTED]
        if events and (undecided or any(row["review"] for row in events)):
            yield _case(events, texts=texts)


def _case(rows: Sequence[Mapping[str, Any]], *, texts: bool) -> Case:
    """Of the rows of one report with its events."""
    report = rows[0]
    events = [{name: row[name] for name in EVENT} | {"drugs": orjson.loads(row["drugs"])} for row in rows]
    flags = _criteria(report, events)
    return {
        "id": report["id"],
        "reported_at": report["reported_at"].isoformat() + "Z" if report["reported_at"] else None,
        "source": report["source"],
        "language": report["language"],
        "permalink": report["permalink"] if texts else None,
        "repeats": report["duplicate_of"],
        "group": report["report_group"],
        "criteria": flags,
        "valid": all(flags.values()),
        "decided": all(event["review"] for event in events),
        "events": events,
        "record_id": report["record_id"],
        "text": report["text"] if texts else None,
        "note": NOTE,
    }


def _criteria(report: Mapping[str, Any], events: Sequence[Mapping[str, Any]]) -> dict[str, bool]:
    """The four criteria, as far as the record shows them."""
    affirmed = [e for e in events if not (e["negated"] or e["hypothetical"])]
    own = any(not e["other_experiencer"] for e in affirmed)
    reporter = bool(report["author_known"])
    return {
        "reporter": reporter,
        "patient": (own and reporter) or bool(PERSON.search(report["text"] or "")),
        "drug": any(e["drugs"] for e in affirmed),
        "event": any(e["pt"] for e in affirmed),
    }


def json_lines(found: Iterable[Case]) -> Iterator[str]:
    for case in found:
        yield orjson.dumps(case).decode() + "\n"


def csv_lines(found: Iterable[Case]) -> Iterator[str]:
    """A head and a line for each case; lists are joined by semicolons."""
    yield csv_line(COLUMNS)
    for case in found:
        events = case["events"]
        flat = case | case["criteria"] | {
            "serious": any(e["serious"] for e in events),
            "drugs": "; ".join(dict.fromkeys(drug for e in events for drug in e["drugs"])),
            "terms": "; ".join(dict.fromkeys(_term(e) for e in events)),
        }  # fmt: skip
        yield csv_line([_cell(flat[name]) for name in COLUMNS])


def _term(event: Mapping[str, Any]) -> str:
    flags = [name for name in ("negated", "hypothetical", "other_experiencer") if event[name]]
    return (event["pt"] or "NIL") + (f" ({', '.join(flags)})" if flags else "")


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return no_formula("" if value is None else str(value))
