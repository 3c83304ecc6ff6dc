"""The reports in the store, and their texts cut into pieces for highlighting."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from streams.html import css_class, cut, length
from streams.records import ReviewedEvent
from streams.reviews.cases import cases
from streams.reviews.log import ReviewLog
from streams.store.database import Database
from streams.store.decisions import ASSIGN, ASSIGNED, found_span
from streams.store.tables import quoted
from streams.web.corrections import found_drugs
from streams.web.store_queries import Rows, rows

LATEST = 20
REPORTS_OF_PAIR = 50
#: Pairs that the signals count.
COUNTED = "affirmed AND NOT other_experiencer"
EVENT_FLAGS = ("negated", "hypothetical", "other_experiencer", "serious")
FLAG_NAMES = {
    "negated": "negated", "hypothetical": "possible", "other_experiencer": "another person's",
    "serious": "serious",
}  # fmt: skip


def latest(database: Database, *, texts: bool) -> Rows:
    """The latest reports with an event, each with its events and pieces."""
    # Ids first: sorting whole rows costs several times as much.
    newest = rows(
        database,
        "SELECT id FROM reports WHERE id IN (SELECT report_id FROM events) "
        f"ORDER BY reported_at DESC NULLS LAST, id LIMIT {LATEST}",
    )
    return with_events(database, [row["id"] for row in newest], texts=texts)


def of_pair(
    database: Database, drug: str, term: str, *, texts: bool, most: int | None = None
) -> tuple[dict[str, int], Rows]:
    """The latest reports of a drug and a preferred term or organ class; and how many `reports` have the pair,
    how many of them the signals count as `all_reports`, and as `unique_reports`.
    """
    same = f"drug = {quoted(drug)} AND (pt = {quoted(term)} OR soc = {quoted(term)})"
    (numbers,) = rows(
        database,
        "SELECT count(DISTINCT report_id) AS reports, "
        f"count(DISTINCT CASE WHEN {COUNTED} THEN report_id END) AS all_reports, "
        f"count(DISTINCT CASE WHEN {COUNTED} THEN report_group END) AS unique_reports "
        f"FROM pairs WHERE {same}",
    )
    reported = rows(
        database,
        f"SELECT DISTINCT report_id, reported_at FROM pairs WHERE {same} "
        f"ORDER BY reported_at DESC NULLS LAST, report_id LIMIT {most or REPORTS_OF_PAIR}",
    )
    return numbers, with_events(database, [row["report_id"] for row in reported], texts=texts)


def unique_reports(database: Database, drug: str, term: str) -> int:
    """How many unique reports of a drug and a preferred term the signals count."""
    where = f"drug = {quoted(drug)} AND pt = {quoted(term)} AND {COUNTED}"
    (found,) = rows(database, f"SELECT count(DISTINCT report_group) AS n FROM pairs WHERE {where}")
    return int(found["n"])


def releases(database: Database) -> list[str]:
    """The releases behind the reports, each as stage and version."""
    found = rows(database, "SELECT DISTINCT releases FROM reports WHERE NOT deleted")
    return sorted({f"{stage} {v}" for row in found for stage, v in orjson.loads(row["releases"]).items()})


def report_of(database: Database, id_: str, *, texts: bool) -> dict[str, Any] | None:
    """A report with its events, its decisions and the reports of its group; None where there is none."""
    reports = with_events(database, [id_], texts=texts)
    if not reports:
        return None
    report = reports[0]
    group = quoted(report["report_group"])
    report["duplicates"] = rows(
        database,
        f"SELECT id, source, reported_at FROM reports WHERE report_group = {group} AND NOT deleted "
        f"AND id <> {quoted(id_)} ORDER BY reported_at LIMIT {REPORTS_OF_PAIR}",
    )
    report["decisions"] = rows(
        database, f"SELECT * FROM reviews WHERE report_id = {quoted(id_)} ORDER BY sequence"
    )
    for made in report["decisions"]:
        made["owner"] = orjson.loads(made["outcome"]) if made["action"] == ASSIGN else None
    return report


def events_of(database: Database, id_: str) -> Rows:
    """The events of a report with its `record_id` and its `text`."""
    return rows(
        database,
        "SELECT e.*, r.record_id, r.text FROM events e JOIN reports r ON r.id = e.report_id "
        f"WHERE NOT r.deleted AND r.id = {quoted(id_)} ORDER BY e.position",
    )


def totals(database: Database) -> dict[str, Any]:
    """Counts of everything, rates by the time of the report, and the releases behind the latest reports."""
    (counts,) = rows(
        database,
        "SELECT count(*) AS reports, count(DISTINCT report_group) AS groups, "
        "max(received_at) AS last_received FROM reports WHERE NOT deleted",
    )
    (events,) = rows(
        database,
        "SELECT count(*) AS events, sum(CASE WHEN review IS NOT NULL THEN 1 ELSE 0 END) AS reviewed, "
        "sum(CASE WHEN nil THEN 1 ELSE 0 END) AS nil FROM events",
    )
    rates = rows(
        database,
        "SELECT source, count(*) AS reports, "
        "sum(CASE WHEN received_at >= last - INTERVAL '1 hour' THEN 1 ELSE 0 END) AS hour, "
        "sum(CASE WHEN received_at >= last - INTERVAL '1 day' THEN 1 ELSE 0 END) AS day "
        "FROM reports, (SELECT max(received_at) AS last FROM reports WHERE NOT deleted) AS newest "
        "WHERE NOT deleted GROUP BY source ORDER BY source",
    )
    releases = rows(
        database,
        "SELECT releases, count(*) AS reports FROM reports WHERE NOT deleted GROUP BY releases "
        "ORDER BY reports DESC LIMIT 5",
    )
    for release in releases:
        release["releases"] = orjson.loads(release["releases"] or "{}")
    return counts | events | {"rates": rates, "releases": releases}


def with_events(database: Database, ids: Sequence[str], *, texts: bool) -> Rows:
    """The reports of those ids that are not deleted, in that order."""
    if not ids:
        return []
    listed = ", ".join(map(quoted, ids))
    short = "(SELECT id AS question, summary FROM summaries WHERE NOT deleted)"
    stored = rows(
        database,
        f"SELECT r.*, s.summary AS summary FROM reports r LEFT JOIN {short} s ON s.question = r.id "
        f"WHERE NOT r.deleted AND r.id IN ({listed})",
    )
    by_id = {report["id"]: report | {"events": [], "owner": "", "assigned": -1} for report in stored}
    sql = f"SELECT * FROM events WHERE report_id IN ({listed}) ORDER BY report_id, position"
    for event in rows(database, sql) if by_id else []:
        by_id[event["report_id"]]["events"].append(opened(event))
    sql = f"SELECT * FROM reviews WHERE report_id IN ({listed}) AND {ASSIGNED}"
    for made in rows(database, sql) if by_id else []:
        if report := by_id.get(made["report_id"]):
            report.update(owner=orjson.loads(made["outcome"]), assigned=made["sequence"])
    reports = [by_id[id_] for id_ in ids if id_ in by_id]
    for report in reports:
        _open(report, texts=texts)
    return reports


def _open(report: dict[str, Any], *, texts: bool) -> None:
    """Reads the columns of JSON and cuts the text; hides the words where texts are switched off."""
    report["mentions"] = orjson.loads(report["mentions"] or "[]")
    report["releases"] = orjson.loads(report["releases"] or "{}")
    if not texts:
        report["text"], report["summary"] = None, None
    _cut(report)


def _cut(report: dict[str, Any]) -> None:
    """Cuts the text at its mentions, those of corrected events at the corrected span."""
    text = report["text"]
    moved = {}
    for event in report["events"]:
        start, end = event["span_start"], event["span_end"]
        moved[found_span(event)] = {"start": start, "end": end}
        whole = text is not None and 0 <= start < end <= len(text)
        event["words"] = text[start:end] if whole else ""
    mentions = [m | moved.get((m["start"], m["end"]), {}) for m in report["mentions"]]
    report["pieces"] = pieces(text or "", mentions, report["events"])


def show_as(report: dict[str, Any], event: dict[str, Any], state: ReviewedEvent) -> None:
    """Shows an event of the report as it was, or is, in a decision that the store need not have yet."""
    names = ("llt", "pt", "soc", "review", *EVENT_FLAGS)
    event.update({name: getattr(state, name) for name in names})
    span = found_span(event)
    event["span_start"] = span[0] if state.start is None else state.start
    event["span_end"] = span[1] if state.end is None else state.end
    event["drugs"] = found_drugs(event) if state.drugs is None else list(state.drugs)
    event["flags"] = _flags(event)
    _cut(report)


def show_completeness(database: Database, reported: Rows) -> None:
    """Adds the `case` of each report, None without an event that counts."""
    ids = [report["id"] for report in reported]
    found = {case["id"]: case for case in cases(database, undecided=True, ids=ids)} if ids else {}
    for report in reported:
        report["case"] = found.get(report["id"])


def by_completeness(database: Database, ids: Sequence[str]) -> list[str]:
    """The ids of the reports with the most complete cases first; without a case they are the last."""
    found = cases(database, undecided=True, ids=ids) if ids else ()
    completeness = {case["id"]: case["completeness"] for case in found}
    return sorted(ids, key=lambda id_: -completeness.get(id_, 0))


def show_owner(log: ReviewLog | None, report: dict[str, Any]) -> None:
    """Shows who has a report where the store does not have that yet."""
    last = log.assigned.get(report["id"]) if log else None
    if last is not None and last.sequence > report["assigned"]:
        report.update(owner=last.owner, assigned=last.sequence)


def _flags(event: dict[str, Any]) -> list[str]:
    return [FLAG_NAMES[name] for name in EVENT_FLAGS if event[name]]


def opened(event: dict[str, Any]) -> dict[str, Any]:
    """An event with its columns of JSON read, and its flags in words."""
    event["drugs"] = orjson.loads(event["drugs"] or "[]")
    event["candidates"] = orjson.loads(event["candidates"] or "[]")
    event["flags"] = _flags(event)
    event["mention_span"] = found_span(event)
    return event


def pieces(text: str, mentions: Sequence[dict[str, Any]], events: Iterable[dict[str, Any]]) -> Rows:
    """The text from boundary to boundary of its mentions, which may overlap: each piece with its class and,
    where a mention ends, with that mention's codes and flags.
    """
    codes = {(e["span_start"], e["span_end"]): e for e in events}
    parts: Rows = []
    for start, end, covering in cut(text, ((m["start"], m["end"], m) for m in mentions)):
        shortest = min(covering, key=length, default=None)
        parts.append(
            {
                "text": text[start:end],
                "start": start,
                "end": end,
                "label": css_class(shortest[2]["label"]) if shortest else None,
                "notes": [_note(m, codes.get((first, last))) for first, last, m in covering if last == end],
                "negated": any((codes.get(m[:2]) or {}).get("negated") for m in covering),
            }
        )
    return parts


def _note(mention: dict[str, Any], event: dict[str, Any] | None) -> str:
    """What stands behind a mention."""
    if event is None:
        return mention["generic"] or str(mention["label"]).lower()
    return ", ".join(
        [event["pt"] or "NIL", *_flags(event), *(["rejected"] if event["review"] == "reject" else [])]
    )
