"""Messages of the topics of results, as the stages write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from models.types import Mention
from streams.codec import encode
from streams.order import ORIGIN, RECEIVED_AT
from streams.records import CodedEvent, CodedReport, Inbound, Origin, ReviewedEvent

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
#: The event that the models found, as reviewers see it.
FOUND = ReviewedEvent(
    llt="Nausea", pt="Nausea", soc="Gastrointestinal disorders", negated=False, hypothetical=False,
    other_experiencer=False,
)  # fmt: skip
TERMS = {"Nausea": "Gastrointestinal disorders", "Insomnia": "Psychiatric disorders"}


def event(drug: str = "sertraline", pt: str | None = "Nausea", **flags: Any) -> CodedEvent:
    soc = TERMS.get(pt, "Investigations") if pt else None
    return CodedEvent(
        mention=0, drugs=(drug,), drug_evidence="relation", llt=pt, pt=pt, soc=soc, score=0.9, nil=pt is None,
        candidates=(), **flags,
    )  # fmt: skip


def report(id_: str, offset: int, *events: CodedEvent, **fields: Any) -> CodedReport:
    """A report with events, from the source record at an offset of partition 0 of `posts`."""
    named: dict[str, Any] = {"created_at": NOON + timedelta(minutes=offset), "source": "posts"} | fields
    return CodedReport(
        id=id_, text=named.pop("text", f"text {offset} of {id_}"), origin=Origin("posts", 0, offset),
        received_at=NOON, mentions=named.pop("mentions", (Mention(0, 4, "text", "ADE", 0.9),)), events=events,
        **named,
    )  # fmt: skip


def message(place: int, record: CodedReport) -> Inbound:
    return Inbound("events", 0, place, record.id.encode(), encode(record), NOON.timestamp())


def deletion(place: int, id_: str, offset: int) -> Inbound:
    headers = ((ORIGIN, f"posts/0/{offset}".encode()), (RECEIVED_AT, NOON.isoformat().encode()))
    return Inbound("events", 0, place, id_.encode(), None, NOON.timestamp(), headers)
