"""What reviewers decided wins over what the models found, in the tables `events` and `pairs`."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC
from typing import Any

import orjson

from streams.codec import BadRecord, decode, decode_any, encode
from streams.records import SECOND, Assignment, Decision, Inbound, Review, SignalDecision
from streams.store.changes import Batch
from streams.store.database import Database
from streams.store.repeats import rows_of
from streams.store.rows import SHARED, Row, pairs_of
from streams.store.tables import EVENTS, REVIEWS
from streams.topics import REVIEWS as TOPIC

log = logging.getLogger(__name__)
#: In the column `drug_evidence` of an event whose drugs a reviewer has set.
BY_REVIEWER = "reviewer"
#: In the column `action` of a decision on a signal, of which `outcome` is the whole.
SIGNAL = "signal"
#: In the column `action` of an assignment, of which `outcome` is the owner; and the last ones of all reports.
ASSIGN = "assign"
ASSIGNED = (
    f"action = '{ASSIGN}' AND sequence IN "
    f"(SELECT max(sequence) FROM {REVIEWS.name} WHERE action = '{ASSIGN}' GROUP BY report_id)"
)
#: Columns of the code and the flags of an event.
CODE = ("llt", "pt", "soc", "negated", "hypothetical", "other_experiencer", "serious")
Place = tuple[str, int, int, str]
"""Report, span and fingerprint of its text."""


def fingerprint(record_id: str | None) -> str:
    """Of the text of a record, from its `source/id/fingerprint/stage@versions`; ids may have slashes."""
    parts = (record_id or "").rsplit("/", 2)
    return parts[1] if len(parts) > 1 else ""


def read_decisions(messages: Iterable[Inbound]) -> tuple[list[Decision], int]:
    """The decisions in the messages, and the number of messages that are none."""
    decisions: list[Decision] = []
    unreadable = 0
    for message in messages:
        try:
            decisions.append(decode_any(TOPIC.kinds, message.value))
        except BadRecord as error:
            unreadable += 1
            log.warning("reviews/%d@%d left out: %s", message.partition, message.offset, error)
    return decisions, unreadable


def apply_decisions(database: Database, batch: Batch, decisions: Sequence[Decision]) -> None:
    """Adds new decisions to a batch, and applies them and earlier ones to the reports that it changes."""
    new = _new(database, decisions)
    batch.rows.reviews += [_row(decision) for decision in new]
    changed = {row["id"] for row in batch.rows.reports}
    decided = {one.report_id for one in new if isinstance(one, Review) and one.reading != SECOND}
    _load(database, batch, sorted(decided - changed))
    concerned = changed | decided
    latest = _latest([*_kept(database, sorted(concerned)), *batch.rows.reviews])
    if not latest:
        return
    reports = {row["id"]: row for row in _reports(database, batch, {place[0] for place in latest})}
    touched = {id_ for id_, *_ in latest} & reports.keys()
    for event in batch.rows.events:
        if event["report_id"] in touched:
            record_id = reports[event["report_id"]]["record_id"]
            place = event["report_id"], *found_span(event), fingerprint(record_id)
            outcome = orjson.loads(latest.get(place, "null"))
            # What an undo gives back is of an earlier release than a record that comes after it.
            if outcome and (outcome["review"] is not None or event["report_id"] not in changed):
                _decide(event, outcome, reports[event["report_id"]]["text"])
    batch.rows.pairs = [pair for pair in batch.rows.pairs if pair["report_id"] not in touched]
    for id_ in sorted(touched):
        events = [event for event in batch.rows.events if event["report_id"] == id_]
        batch.rows.pairs += pairs_of(reports[id_], events)


def signal_decisions(database: Database) -> list[SignalDecision]:
    """The decisions on signals, in their order."""
    sql = f"SELECT outcome FROM {REVIEWS.name} WHERE action = '{SIGNAL}' ORDER BY sequence"
    return [decode(SignalDecision, outcome.encode()) for (outcome,) in database.query(sql)[1]]


def found_span(event: Mapping[str, Any]) -> tuple[int, int]:
    """Where the models found an event, also if a reviewer has moved it: decisions name it by that place."""
    place = orjson.loads(event["found"]) if event["found"] else event
    return place["span_start"], place["span_end"]


def _decide(event: Row, outcome: dict[str, Any], text: str | None) -> None:
    """Makes of an event what was decided; a span or drugs that are null are those of the models. An undo
    gives back all that the models found, which a later release may have changed since the decision.
    """
    names = ("span_start", "span_end", "drugs", "drug_evidence", *CODE)
    original = orjson.loads(event["found"]) if event["found"] else {name: event[name] for name in names}
    if outcome["review"] is None:  # earlier versions kept no codes
        outcome |= {name: original[name] for name in CODE if name in original}
    start, end, drugs = (outcome.pop(name, None) for name in ("start", "end", "drugs"))
    if text is None or start is None or not 0 <= start < end <= len(text):
        start, end = original["span_start"], original["span_end"]
    event.update(outcome | {"found": orjson.dumps(original).decode(), "span_start": start, "span_end": end})
    event["nil"] = event["pt"] is None
    event["drugs"] = original["drugs"] if drugs is None else orjson.dumps(drugs).decode()
    event["drug_evidence"] = original["drug_evidence"] if drugs is None else BY_REVIEWER
    event["mention"] = None if text is None else text[start:end]


def _new(database: Database, decisions: Sequence[Decision]) -> list[Decision]:
    """The first decision of each sequence number: another one of the same number was written at the same
    moment, and late.
    """
    if not decisions:
        return []
    numbers = ", ".join(str(decision.sequence) for decision in decisions)
    sql = f"SELECT sequence FROM {REVIEWS.name} WHERE sequence IN ({numbers})"
    known = {sequence for (sequence,) in database.query(sql)[1]}
    first = {d.sequence: d for d in reversed(decisions) if d.sequence not in known}
    return sorted(first.values(), key=lambda decision: decision.sequence)


def _row(decision: Decision) -> Row:
    shared = dict.fromkeys(REVIEWS.columns) | {
        "sequence": decision.sequence,
        "reviewer": decision.reviewer,
        "decided_at": decision.decided_at.astimezone(UTC).replace(tzinfo=None).isoformat(),
    }
    if isinstance(decision, SignalDecision):
        return shared | {"action": SIGNAL, "outcome": encode(decision).decode()}
    shared["report_id"] = decision.report_id
    if isinstance(decision, Assignment):
        return shared | {"action": ASSIGN, "outcome": orjson.dumps(decision.owner).decode()}
    return shared | {
        "span_start": decision.start,
        "span_end": decision.end,
        "fingerprint": decision.fingerprint,
        "action": decision.action,
        "reading": decision.reading,
        "outcome": orjson.dumps(asdict(decision.after)).decode(),
    }


def _latest(rows: Iterable[Row]) -> dict[Place, str]:
    """The outcome of the last decision on each event; a second reading decides nothing."""
    valid = (row for row in rows if row["reading"] != SECOND and row["action"] not in (SIGNAL, ASSIGN))
    ordered = sorted(valid, key=lambda row: int(row["sequence"]))
    return {(r["report_id"], r["span_start"], r["span_end"], r["fingerprint"]): r["outcome"] for r in ordered}


def _kept(database: Database, ids: Sequence[str]) -> Iterable[Row]:
    """The decisions that the database has on some reports."""
    # Read to the end, which ends the transaction of the query.
    if not list(database.query(f"SELECT 1 FROM {REVIEWS.name} LIMIT 1")[1]):
        return []
    return rows_of(database, REVIEWS.columns, "reviews WHERE report_id", ids)


def _load(database: Database, batch: Batch, ids: Sequence[str]) -> None:
    """Puts the stored events of some reports into the batch, to be written anew."""
    batch.rows.events += rows_of(database, EVENTS.columns, "events WHERE report_id", ids)
    batch.replaced += ids


def _reports(database: Database, batch: Batch, ids: set[str]) -> list[Row]:
    """The rows of some reports, as they are after the batch."""
    given = [row for row in batch.rows.reports if row["id"] in ids]
    columns = ("id", "record_id", "text", *SHARED)
    stored = rows_of(database, columns, "reports WHERE id", ids - {row["id"] for row in given})
    for row in stored:
        row["reported_at"] = row["reported_at"].isoformat() if row["reported_at"] else None
    return given + stored
