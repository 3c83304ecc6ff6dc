"""From a record to the rows of the tables, and from a row back to the revision of its record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson

from models.drugs.placeholders import is_product
from streams.dates import implausible
from streams.order import Revision
from streams.records import CodedEvent, CodedReport, Origin, Report, Summary
from streams.store.same_case import group_of
from streams.store.tables import REPORTS, SUMMARIES, Table

Row = dict[str, Any]
#: In the column `review` of an event that a reviewer found to be none.
REJECTED = "reject"
#: Of the training pairs that a relation has as its reasons.
SHOWN_NEIGHBOURS = 3
#: Columns of `reports` and `summaries` that `revision_from` reads, in its order.
REVISION = (
    "origin_topic", "origin_partition", "origin_offset", "generations", "received_at", "releases", "deleted",
)  # fmt: skip


@dataclass(slots=True)
class Rows:
    """The rows of some reports, one list for each table."""

    reports: list[Row] = field(default_factory=list)
    summaries: list[Row] = field(default_factory=list)
    events: list[Row] = field(default_factory=list)
    pairs: list[Row] = field(default_factory=list)
    reviews: list[Row] = field(default_factory=list)

    def add(self, id_: str, revision: Revision, record: Report | None, table: Table = REPORTS) -> None:
        """The rows of a record of `table`, REPORTS or SUMMARIES; of a deleted one (None) a row without
        contents stays, so that a stale record cannot bring it back.
        """
        row: Row = dict.fromkeys(table.columns)
        row |= {"id": id_, "deleted": record is None, **_revision_columns(revision)}
        (self.summaries if table is SUMMARIES else self.reports).append(row)
        if isinstance(record, Summary):
            row |= {
                "source": record.source,
                "summary": _text(record.summary.text),
                "reported_at": _time(_reported_at(record)),
                "record_id": record.record_id,
            }
        elif record is not None:
            self._add_report(row, record)

    def _add_report(self, row: Row, record: Report) -> None:
        id_ = row["id"]
        reported_at = _time(_reported_at(record))
        row |= {
            "source": record.source,
            # The conditions of some sources allow counts and no copy of the text.
            "text": None if getattr(record, "aggregate_only", False) else _text(record.text),
            "language": getattr(record, "language", None),
            "drug": _text("; ".join(record.stated_drugs)) or None,
            "indication": _text(record.indication),
            "created_at": _time(record.created_at),
            "reported_at": reported_at,
            # That of a repeat is the group of the report that it repeats; see `streams.store.repeats`.
            "report_group": group_of(record) if isinstance(record, CodedReport) else id_,
            "duplicate_of": record.duplicate_of,
            "mentions": _mentions(record),
            "record_id": record.record_id,
            "permalink": None if getattr(record, "aggregate_only", False) else _text(record.permalink),
            "author_known": record.author is not None or record.permalink is not None,
            "country": _text(record.country),
        }
        if isinstance(record, CodedReport):
            quotes = row["text"] is not None
            row["case_fields"] = _json(record.case_fields) if quotes else None
            events = [_event(id_, i, event, record, quotes=quotes) for i, event in enumerate(record.events)]
            self.events += events
            self.pairs += pairs_of(row, events)


def _reported_at(record: Report) -> datetime | None:
    """When the report was written; its arrival where that cannot be, as records of earlier versions state it.
    Otherwise it would be in no window of the signals, or the latest report of all for years.
    """
    created, received = record.created_at, record.received_at
    return received if created is None or implausible(created, received) else created


def revision_from(row: Sequence[Any]) -> Revision:
    """The revision in a row of the columns REVISION."""
    topic, partition, offset, generations, received_at, releases, deleted = row
    return Revision(
        Origin(topic, partition, offset) if topic is not None else None,
        tuple(orjson.loads(generations)),
        received_at.replace(tzinfo=UTC) if received_at is not None else None,
        frozenset(orjson.loads(releases).items()),
        bool(deleted),
    )


def _revision_columns(revision: Revision) -> Row:
    origin = revision.origin
    return {
        "origin_topic": origin.topic if origin else None,
        "origin_partition": origin.partition if origin else None,
        "origin_offset": origin.offset if origin else None,
        "generations": orjson.dumps(revision.generations).decode(),
        "received_at": _time(revision.received_at),
        "releases": orjson.dumps(dict(sorted(revision.releases))).decode(),
    }


def _event(id_: str, position: int, event: CodedEvent, record: CodedReport, *, quotes: bool) -> Row:
    mention = record.mentions[event.mention]
    return {
        "report_id": id_,
        "position": position,
        "mention": _text(mention.text) if quotes else None,
        "span_start": mention.start,
        "span_end": mention.end,
        "label": mention.label,
        "llt": event.llt,
        "pt": event.pt,
        "soc": event.soc,
        "score": event.score,
        "nil": event.nil,
        "negated": event.negated,
        "hypothetical": event.hypothetical,
        "other_experiencer": event.other_experiencer,
        "serious": event.serious,
        "drug_evidence": event.drug_evidence,
        "drugs": _json([_text(drug) for drug in event.drugs]),
        "candidates": _json(event.candidates),
        "review": None,
        "found": None,
    }


#: Columns of a report that its pairs have too.
SHARED = ("report_group", "source", "language", "reported_at")


def pairs_of(report: Row, events: Sequence[Row]) -> list[Row]:
    """Each suspected drug with each coded event of a report, equal ones once; rejected events have none. What
    is no product that could be counted, as a class of drugs, stands with its events and is in no pair.
    """
    distinct = {
        (
            drug, event["pt"], event["soc"], not (event["negated"] or event["hypothetical"]),
            event["other_experiencer"], event["serious"], event["drug_evidence"],
        )
        for event in events
        if event["pt"] is not None and event["review"] != REJECTED
        for drug in orjson.loads(event["drugs"])
        if is_product(drug)
    }  # fmt: skip
    names = ("drug", "pt", "soc", "affirmed", "other_experiencer", "serious", "drug_evidence")
    shared = {"report_id": report["id"]} | {name: report[name] for name in SHARED}
    return [shared | dict(zip(names, pair, strict=True)) for pair in sorted(distinct, key=str)]


def _mentions(record: Report) -> str | None:
    """The mentions without their words, which are in the text if that is kept; an effect with the `reasons`
    of its relations.
    """
    if not isinstance(record, CodedReport):
        return None
    names = ("start", "end", "label", "score", "generic", "status", "status_score", "kind", "members")
    mentions = [{name: getattr(m, name) for name in names} for m in record.mentions]
    for relation in record.relations:
        drug = record.mentions[relation.head]
        reason = {"drug": _text(drug.generic or drug.text), "score": relation.score}
        nearest = relation.neighbours[:SHOWN_NEIGHBOURS]
        mentions[relation.tail].setdefault("reasons", []).append(reason | {"neighbours": nearest})
    return _json(mentions)


def _json(value: Any) -> str:
    """An U+0000 in it is an escape, which every database stores as it is."""
    return orjson.dumps(value).decode()


def _text(text: str | None) -> str | None:
    """PostgreSQL stores no U+0000."""
    return text.replace("\0", "�") if text else text


def _time(time: datetime | None) -> str | None:
    """ISO 8601 in UTC without a zone."""
    return time.astimezone(UTC).replace(tzinfo=None).isoformat() if time else None
