"""The events that wait for a reviewer."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from streams.records import SECOND, Review
from streams.reviews.log import Place, ReviewLog, place_of
from streams.store.database import Database
from streams.store.decisions import fingerprint, found_span
from streams.store.tables import quoted
from streams.web.corrections import FLAGS
from streams.web.store_queries import rows

#: Orders by name, as what SQL sorts by.
ORDERS = {
    "uncertainty": "score, report_id, position",
    "seriousness": "serious DESC, score, report_id, position",
    "random": "MD5(report_id || '/' || position), report_id, position",
}
#: The order of the events of reports that are assigned to the reviewer.
MINE = "mine"
#: Events that are fetched at once.
FETCHED = 200
#: Reports in one query.
CHUNK = 1000


def waiting(database: Database, order: str, start: int = 0) -> tuple[int, list[Place]]:
    """The number of events without a decision, and FETCHED of them from `start` on. A deleted report has no
    events.
    """
    (count,) = rows(database, "SELECT count(*) AS n FROM events WHERE review IS NULL")
    events = rows(
        database,
        "SELECT report_id, span_start, span_end, found FROM events WHERE review IS NULL "
        f"ORDER BY {ORDERS[order]} LIMIT {FETCHED} OFFSET {start}",
    )
    if not events:
        return int(count["n"]), []
    ids = ", ".join(quoted(event["report_id"]) for event in events)
    records = rows(database, f"SELECT id, record_id FROM reports WHERE id IN ({ids})")
    by_id = {row["id"]: row["record_id"] for row in records}
    return int(count["n"]), [place(event | {"record_id": by_id.get(event["report_id"])}) for event in events]


def place(event: dict[str, Any]) -> Place:
    """Of an event with the `record_id` of its report."""
    return event["report_id"], *found_span(event), fingerprint(event["record_id"])


def present(database: Database, places: Sequence[Place]) -> list[Place]:
    """The places whose report still has the event: it may be deleted or changed, and a later release may
    have found other spans.
    """
    stored = _stored_reviews(database, places)
    return [where for where in places if where in stored]


def reviewed_since(database: Database, log: ReviewLog) -> int:
    """How many more events are decided than the store has applied yet. What it has applied it counts itself:
    it keeps the sequence number of each decision, which it gets in their order. Where another process writes
    meanwhile, the store is to be counted first, in the same snapshot.
    """
    applied = rows(database, "SELECT sequence FROM reviews ORDER BY sequence DESC LIMIT 1")
    first = applied[0]["sequence"] + 1 if applied else 0
    # Not the same place twice: an undo may follow.
    later = (one for one in log.decisions[first:] if isinstance(one, Review))
    pending = {place_of(review) for review in later if review.reading != SECOND}
    stored = _stored_reviews(database, sorted(pending))
    return sum(is_decided(log, where) - (review is not None) for where, review in stored.items())


def alike(database: Database, event: Mapping[str, Any]) -> int:
    """How many undecided events of the store are like an event, itself too."""
    return int(rows(database, f"SELECT count(*) AS n FROM events e WHERE {like(event)}")[0]["n"])


def like(event: Mapping[str, Any]) -> str:
    """Conditions on an event `e`: what a decision would say of both is the same."""
    flags = " AND ".join(f"e.{name} = {bool(event[name])}" for name in (*FLAGS, "serious"))
    code = "e.llt IS NULL" if event["llt"] is None else f"e.llt = {quoted(event['llt'])}"
    drugs = quoted(orjson.dumps(event["drugs"]).decode())
    words = quoted((event["mention"] or "").lower())
    return f"e.review IS NULL AND lower(e.mention) = {words} AND {code} AND {flags} AND e.drugs = {drugs}"


def is_decided(log: ReviewLog, where: Place) -> bool:
    return where in log.current and log.current[where].review is not None


def _stored_reviews(database: Database, places: Sequence[Place]) -> dict[Place, str | None]:
    """What the store has as the decision, for those events that reports have."""
    wanted = set(places)
    stored = _stored(database, sorted({where[0] for where in places}))
    return {where: event["review"] for where, event in stored if where in wanted}


def _stored(database: Database, ids: Sequence[str]) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    """The events of reports that are not deleted."""
    for i in range(0, len(ids), CHUNK):
        events = rows(
            database,
            "SELECT e.report_id, e.span_start, e.span_end, e.found, e.review, e.score, r.record_id "
            "FROM events e JOIN reports r ON r.id = e.report_id "
            f"WHERE NOT r.deleted AND r.id IN ({', '.join(map(quoted, ids[i : i + CHUNK]))})",
        )
        yield from ((place(event), event) for event in events)


def of_owner(database: Database, log: ReviewLog, name: str) -> list[Place]:
    """The undecided events of the reports that a reviewer has, by uncertainty."""
    stored = _stored(database, sorted(id_ for id_, made in log.assigned.items() if made.owner == name))
    found = [(event["score"], where) for where, event in stored if event["review"] is None]
    return [where for _, where in sorted(found) if not is_decided(log, where)]


def _for_second_reading(log: ReviewLog, name: str) -> list[Place]:
    """Events that somebody else has decided and nobody has read again, in a random order that stays."""
    places = [
        where
        for where, r in log.readings.items()
        if r.first and r.first.reviewer != name and r.second is None and r.resolution is None
    ]
    return sorted(places, key=lambda where: hashlib.md5(str(where).encode(), usedforsecurity=False).digest())


def _disputed(log: ReviewLog, name: str) -> list[Place]:
    """Events of which two other people's readings differ: nobody is the judge of their own."""
    return [
        where
        for where, r in log.readings.items()
        if r.is_disputed
        and name not in {review.reviewer for review in (r.first, r.second) if review is not None}
    ]


#: Orders of events that are decided already, for a reviewer of a name.
READINGS: dict[str, Callable[[ReviewLog, str], list[Place]]] = {
    "second": _for_second_reading,
    "disputed": _disputed,
}
#: All orders that can be chosen.
NAMES = (*ORDERS, MINE, *READINGS)
