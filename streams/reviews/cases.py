"""Candidate cases: reports with the four criteria of a valid report as flags, for a person to assess."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

import orjson

from models.case_fields.fields import case_fields
from models.types import CASE_FIELDS, DRUG, INDICATION
from streams.reviews.completeness import completeness
from streams.reviews.e2b import MINIMUM, draft, is_affirmed
from streams.store.csv_line import csv_line, no_formula
from streams.store.database import Database
from streams.store.rows import REJECTED
from streams.store.tables import quoted

Case = dict[str, Any]
#: Stands with every case.
NOTE = "candidate, not assessed by a qualified person; not an E2B message"
REPORT = (
    "id", "reported_at", "source", "language", "country", "permalink", "author_known", "duplicate_of",
    "report_group", "record_id", "indication", "mentions", "case_fields", "text",
)  # fmt: skip
EVENT = (
    "span_start", "span_end", "llt", "pt", "soc", "serious", "negated", "hypothetical", "other_experiencer",
    "drugs", "drug_evidence", "review",
)  # fmt: skip
CRITERIA = ("reporter", "patient", "drug", "event")
#: Field to its column; `serious` is whether the terminology marks an event.
FIELD_COLUMNS = {name: name for name in CASE_FIELDS} | {"serious": "seriousness"}
LISTS = ("missing", "incomplete", "indications", "co_medication")
#: Columns of CSV.
COLUMNS = (
    "id", "reported_at", "source", "language", "country", "permalink", "repeats", "group", *CRITERIA, "valid",
    "missing", "completeness", "incomplete", "decided", "serious", "drugs", "terms", *FIELD_COLUMNS.values(),
    "indications", "co_medication", "text", "note",
)  # fmt: skip
#: Words by which a text names a relative as its patient.
RELATIVE = re.compile(
    r"\bmy (?:\w+ )?(?:mother|mom|mum|father|dad|wife|husband|partner|girlfriend|boyfriend|son|daughter|"
    r"child|kid|baby|toddler|brother|sister|grand\w+|aunt|uncle|cousin|niece|nephew|patient)\b",
    re.IGNORECASE,
)


def cases(
    database: Database, *, undecided: bool = False, texts: bool = True, ids: Collection[str] | None = None
) -> Iterator[Case]:
    """A case for each report with an event that a reviewer has kept; with `undecided` also for those of which
    nobody has decided an event. Rejected events are left out. Raises DatabaseError.
    """
    columns = ", ".join([*(f"r.{name}" for name in REPORT), *(f"e.{name}" for name in EVENT)])
    joined = "reports r JOIN events e ON r.id = e.report_id"
    where = "" if ids is None else f"WHERE r.id IN ({', '.join(map(quoted, ids))})"
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
    found = _fields(report)
    flags = _criteria(report, events, found)
    case = {
        "id": report["id"],
        "reported_at": report["reported_at"].isoformat() + "Z" if report["reported_at"] else None,
        "source": report["source"],
        "language": report["language"],
        "country": report["country"],
        "permalink": report["permalink"] if texts else None,
        "repeats": report["duplicate_of"],
        "group": report["report_group"],
        "criteria": flags,
        "valid": all(flags.values()),
        "missing": [MINIMUM[name] for name, met in flags.items() if not met],
        "decided": all(event["review"] for event in events),
        "events": events,
        "case_fields": found,
        "fields": _distinct(found),
        **_medicines(report, events, texts=texts),
        "record_id": report["record_id"],
        "text": report["text"] if texts else None,
        "note": NOTE,
    }
    case["completeness"], case["incomplete"] = completeness(case)
    return case


def _fields(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What the text states of the case; a record of an earlier version is read again."""
    if report["case_fields"] is not None:
        return list(orjson.loads(report["case_fields"]))
    return [asdict(field) for field in case_fields(report["text"] or "", ())]


def _distinct(found: Sequence[Mapping[str, Any]]) -> dict[str, list[str | None]]:
    """The different values of each field, in the order of the text."""
    values: dict[str, dict[str | None, None]] = {}
    for field in found:
        values.setdefault(field["field"], {})[field["value"]] = None
    return {name: list(distinct) for name, distinct in values.items()}


def _medicines(
    report: Mapping[str, Any], events: Sequence[Mapping[str, Any]], *, texts: bool
) -> dict[str, list[Any]]:
    """The mentioned drugs with their places, suspects, other drugs, and complaints that were treated."""
    text = report["text"] or ""
    mentions = orjson.loads(report["mentions"] or "[]")
    drugs = [
        {"name": m["generic"] or text[m["start"] : m["end"]].lower(), "start": m["start"], "end": m["end"]}
        for m in mentions
        if m["label"] == DRUG and (m["generic"] or texts)
    ]
    suspects = list(dict.fromkeys(drug for e in events if is_affirmed(e) for drug in e["drugs"]))
    others = [name for name in dict.fromkeys(d["name"] for d in drugs) if name and name not in suspects]
    treated = [text[m["start"] : m["end"]] for m in mentions if m["label"] == INDICATION and texts]
    harms = {text[e["span_start"] : e["span_end"]].casefold() for e in events}
    stated = [report["indication"] or "", *(words for words in treated if words.casefold() not in harms)]
    indications = [name for name in dict.fromkeys(stated) if name]
    return {"drugs": drugs, "suspects": suspects, "co_medication": others, "indications": indications}


def _criteria(
    report: Mapping[str, Any], events: Sequence[Mapping[str, Any]], found: Sequence[Mapping[str, Any]]
) -> dict[str, bool]:
    """The four criteria, as far as the record shows them."""
    affirmed = [e for e in events if is_affirmed(e)]
    own = any(not e["other_experiencer"] for e in affirmed)
    reporter = bool(report["author_known"])
    named = any(f["field"] in ("age", "age_group") for f in found) or RELATIVE.search(report["text"] or "")
    return {
        "reporter": reporter,
        "patient": (own and reporter) or bool(named),
        "drug": any(e["drugs"] for e in affirmed),
        "event": any(e["pt"] for e in affirmed),
    }


def by_completeness(found: Iterable[Case]) -> list[Case]:
    """The most complete first."""
    return sorted(found, key=lambda case: (-case["completeness"], case["id"]))


def drafts(found: Iterable[Case]) -> Iterator[str]:
    """A line for each case: a draft in the elements of E2B(R3)."""
    for case in found:
        yield orjson.dumps(draft(case)).decode() + "\n"


def json_lines(found: Iterable[Case]) -> Iterator[str]:
    for case in found:
        yield orjson.dumps(case).decode() + "\n"


def csv_lines(found: Iterable[Case]) -> Iterator[str]:
    """A head and a line for each case; lists are joined by semicolons."""
    yield csv_line(COLUMNS)
    for case in found:
        events = case["events"]
        flat = dict.fromkeys(FIELD_COLUMNS.values(), "") | case | case["criteria"] | {
            **{FIELD_COLUMNS[name]: _stated(values) for name, values in case["fields"].items()},
            **{name: _joined(case[name]) for name in LISTS},
            "serious": any(e["serious"] for e in events),
            "drugs": _joined(drug for e in events for drug in e["drugs"]),
            "terms": _joined(_term(e) for e in events),
        }  # fmt: skip
        yield csv_line([_cell(flat[name]) for name in COLUMNS])


def _term(event: Mapping[str, Any]) -> str:
    flags = [name for name in ("negated", "hypothetical", "other_experiencer") if event[name]]
    return (event["pt"] or "NIL") + (f" ({', '.join(flags)})" if flags else "")


def _stated(values: Iterable[str | None]) -> str:
    return _joined(value or "stated" for value in values)


def _joined(values: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(values))


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return no_formula("" if value is None else str(value))
