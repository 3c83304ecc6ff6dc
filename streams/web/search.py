"""Search over the reports by their texts and events; the address is the filter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any
from urllib.parse import urlencode

import orjson
from aiohttp import web

from streams.store.database import Database
from streams.store.decisions import ASSIGNED
from streams.store.tables import quoted
from streams.web.access import user_of
from streams.web.reports import FLAG_NAMES, by_completeness, show_completeness, with_events
from streams.web.site import SITE, csv_file, page
from streams.web.store_queries import Rows, rows

SHOWN = 25
#: Reports that are sorted by completeness, the latest: each is read for it.
SORTED = 500
#: Events in a file.
MOST = 10_000
STATES = {"undecided": "undecided", "accept": "accepted", "reject": "rejected", "correct": "corrected"}
FLAGS = FLAG_NAMES | {"nil": "without a code"}
COLUMNS = (
    "report_id",
    "source",
    "reported_at",
    "words",
    "llt",
    "pt",
    "soc",
    "drugs",
    *FLAGS,
    "score",
    "review",
)


@dataclass(frozen=True, slots=True)
class Filter:
    """What a report must have; an empty text is no condition. One event must have all that is said of one."""

    text: str = ""
    drug: str = ""
    term: str = ""
    since: str = ""
    until: str = ""
    source: str = ""
    flag: str = ""
    state: str = ""
    owner: str = ""
    sort: str = ""
    """Empty, the latest first, or `completeness`."""

    @classmethod
    def of(cls, query: Mapping[str, str], *, texts: bool) -> Filter:
        """From the query string of a URL; a value that cannot be is no condition. Where texts are switched
        off nothing is searched in them, which would tell what they have.
        """
        given = {name: query.get(name, "").strip()[:200] for name in cls.__slots__}
        for name in ("since", "until"):
            given[name] = _day(given[name])
        given["flag"] = given["flag"] if given["flag"] in FLAGS else ""
        given["state"] = given["state"] if given["state"] in STATES else ""
        given["sort"] = given["sort"] if given["sort"] == "completeness" else ""
        return cls(**given | ({} if texts else {"text": ""}))

    @property
    def query(self) -> str:
        """The conditions as the query string of a URL."""
        return urlencode({name: getattr(self, name) for name in self.__slots__ if getattr(self, name)})

    def of_report(self) -> str:
        """The conditions on a report `r`."""
        found = ["NOT r.deleted"]
        if self.text:
            found.append(_has("r.text", self.text))
        if self.source:
            found.append(f"r.source = {quoted(self.source)}")
        if self.owner:
            owner = quoted(orjson.dumps(self.owner).decode())
            found.append(f"r.id IN (SELECT report_id FROM reviews WHERE outcome = {owner} AND {ASSIGNED})")
        if self.since:
            found.append(f"r.reported_at >= '{self.since}'")
        if self.until:
            found.append(f"r.reported_at < '{date.fromisoformat(self.until) + timedelta(days=1)}'")
        return " AND ".join(found)

    def of_event(self) -> str:
        """The conditions on an event `e`; empty where there are none."""
        found = []
        if self.drug:
            found.append(_has("e.drugs", orjson.dumps(self.drug).decode()[1:-1]))
        if self.term:
            found.append(f"({' OR '.join(_has(f'e.{name}', self.term) for name in ('pt', 'llt', 'soc'))})")
        if self.flag:
            found.append(f"e.{self.flag}")
        if self.state:
            found.append(
                "e.review IS NULL" if self.state == "undecided" else f"e.review = {quoted(self.state)}"
            )
        return " AND ".join(found)


async def search(request: web.Request) -> web.Response:
    """The latest or most complete reports that pass the filter, or all of their events that do as a file."""
    site = request.app[SITE]
    texts = site.settings.web_texts
    wanted = Filter.of(request.query, texts=texts)
    if request.query.get("format") == "csv":
        found = await site.queries.run(lambda database: events_of(database, wanted))
        return csv_file("reports.csv", _lines(found, texts=texts))
    start = _number(request.query.get("start", ""))

    def query(database: Database) -> tuple[int, Rows, list[str], list[str]]:
        count, ids = listed(database, wanted, start)
        sources = rows(database, "SELECT DISTINCT source FROM reports WHERE NOT deleted ORDER BY source")
        named = [row["source"] for row in sources if row["source"]]
        assigned = rows(database, f"SELECT DISTINCT outcome FROM reviews WHERE {ASSIGNED}")
        owners = sorted(orjson.loads(row["outcome"]) for row in assigned)
        found = with_events(database, ids, texts=texts)
        show_completeness(database, found)
        return count, found, named, owners

    count, found, sources, owners = await site.queries.run(query)
    mine = user_of(request).name
    return page(
        request, "search.html", wanted=wanted, count=count, reports=found, start=start,
        sources={source: source for source in sources},
        owners={mine: "me"} | {name: name for name in owners if name not in {"", mine}},
        end=min(count, SORTED) if wanted.sort else count, shown=SHOWN, most=MOST, flags=FLAGS, states=STATES,
    )  # fmt: skip


def listed(database: Database, wanted: Filter, start: int) -> tuple[int, list[str]]:
    """How many reports pass, and the ids of those that are shown."""
    where = wanted.of_report()
    if events := wanted.of_event():
        where += f" AND r.id IN (SELECT e.report_id FROM events e WHERE {events})"
    (count,) = rows(database, f"SELECT count(*) AS n FROM reports r WHERE {where}")
    part = f"LIMIT {SORTED}" if wanted.sort else f"LIMIT {SHOWN} OFFSET {start}"
    order = f"ORDER BY r.reported_at DESC NULLS LAST, r.id {part}"
    ids = [row["id"] for row in rows(database, f"SELECT r.id AS id FROM reports r WHERE {where} {order}")]
    if wanted.sort:
        ids = by_completeness(database, ids)[start : start + SHOWN]
    return int(count["n"]), ids


def events_of(database: Database, wanted: Filter) -> Rows:
    """The events of those reports that pass, by COLUMNS."""
    where = f"{wanted.of_report()} AND {wanted.of_event() or '1 = 1'}"
    names = ", ".join(f"e.{name}" for name in COLUMNS if name not in {"source", "reported_at", "words"})
    return rows(
        database,
        f"SELECT {names}, e.mention AS words, r.source AS source, r.reported_at AS reported_at "
        f"FROM reports r JOIN events e ON e.report_id = r.id WHERE {where} "
        f"ORDER BY r.reported_at DESC NULLS LAST, r.id, e.position LIMIT {MOST}",
    )


def _lines(events: Iterable[Mapping[str, Any]], *, texts: bool) -> Iterator[Iterable[Any]]:
    yield COLUMNS
    for event in events:
        shown = dict(event) | {"drugs": "; ".join(orjson.loads(event["drugs"] or "[]"))}
        if not texts:
            shown["words"] = None
        yield (shown[name] for name in COLUMNS)


def _has(column: str, text: str) -> str:
    """A condition that holds where the text is in a column, in capital or small letters."""
    return f"position({quoted(text.lower())} IN lower({column})) > 0"


def _day(text: str) -> str:
    """The day in ISO 8601; empty where it is none, or the last one of the calendar."""
    with suppress(ValueError, OverflowError):
        day = date.fromisoformat(text)
        return str(day) if day + timedelta(days=1) else ""
    return ""


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < len(str(1 << 31)) else 0


ROUTES = [web.get("/search", search)]
