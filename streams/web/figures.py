"""Figures of the store over time and over drugs: reports, alarms and drift by day, terms, organ classes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any

import orjson
from aiohttp import web

from streams.records import Signal
from streams.store.database import Database
from streams.store.tables import quoted
from streams.web.reports import COUNTED
from streams.web.site import SITE, page
from streams.web.store_queries import Rows, rows

#: Days that the charts have, and days of each of the two periods whose terms are compared.
DAYS, PERIOD = 90, 28
#: Terms and signals, and drugs and organ classes of the heat map, that are shown; steps of its colours.
TERMS, SIDE, STEPS = 15, 12, 5
#: Width and height of a chart and of an interval, in the units of their boxes.
WIDTH, HEIGHT, INTERVAL = 360.0, 90.0, 160.0
#: Standard deviations between two counts from which a term rises or falls.
SURE = 1.96
AFFIRMED = "NOT negated AND NOT hypothetical AND NOT other_experiencer"


@dataclass(frozen=True, slots=True)
class Day:
    """What came on a day; without reports or events there are no shares."""

    day: date
    reports: int = 0
    alarms: int = 0
    """Reports with an affirmed event of the writer."""
    score: float | None = None
    """Mean cosine of the events and their terms."""
    nil: float | None = None
    """Share of the events without a code."""

    @property
    def rate(self) -> float | None:
        return self.alarms / self.reports if self.reports else None


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars or a line over the days, by their places in the box."""

    title: str
    top: float
    values: list[float | None]
    bars: bool = False

    @property
    def line(self) -> str:
        """The points of the days that have a value."""
        step = WIDTH / max(1, len(self.values))
        return " ".join(
            f"{(i + 0.5) * step:.1f},{HEIGHT - self.height(value):.1f}"
            for i, value in enumerate(self.values)
            if value is not None
        )

    def height(self, value: float | None) -> float:
        return (value or 0) / self.top * (HEIGHT - 4)


async def figures(request: web.Request) -> web.Response:
    """The figures of all drugs, or of the one that is named."""
    site, drug = request.app[SITE], request.query.get("drug", "").strip()[:200]
    outcome = await site.signals.outcome()
    found = await site.queries.run(lambda database: _found(database, drug))
    named = [signal for signal in outcome.signals if "all" in signal.windows and drug in {"", signal.drug}]
    strongest = sorted(named, key=lambda signal: -signal.windows["all"].ic.low)[:TERMS]
    return page(
        request, "figures.html", drug=drug, forest=forest(strongest), days_compared=PERIOD, steps=STEPS,
        width=WIDTH, height=HEIGHT, interval=INTERVAL, most=TERMS, side=SIDE, **found,
    )  # fmt: skip


def _found(database: Database, drug: str) -> dict[str, Any]:
    (last,) = rows(database, "SELECT max(reported_at) AS last FROM reports WHERE NOT deleted")
    if last["last"] is None:
        return {"days": [], "charts": [], "releases": [], "terms": [], "heat": ([], [])}
    end = last["last"].date()
    days = by_day(database, drug, end)
    return {
        "days": days, "charts": charts(days), "releases": releases(database, days[0].day),
        "terms": terms(database, drug, end), "heat": heat(database),
    }  # fmt: skip


def by_day(database: Database, drug: str, end: date) -> list[Day]:
    """The last DAYS days up to `end`, also those without a report."""
    start = end - timedelta(days=DAYS - 1)
    where = f"NOT r.deleted AND r.reported_at >= '{start}'"
    if drug:
        where += f" AND r.id IN (SELECT report_id FROM pairs WHERE drug = {quoted(drug)})"
    counted = rows(
        database,
        "SELECT CAST(r.reported_at AS DATE) AS day, count(*) AS reports, sum(CASE WHEN r.id IN "
        f"(SELECT report_id FROM events WHERE {AFFIRMED}) THEN 1 ELSE 0 END) AS alarms "
        f"FROM reports r WHERE {where} GROUP BY 1",
    )
    coded = rows(
        database,
        "SELECT CAST(r.reported_at AS DATE) AS day, avg(e.score) AS score, "
        "avg(CASE WHEN e.nil THEN 1.0 ELSE 0.0 END) AS nil "
        f"FROM events e JOIN reports r ON r.id = e.report_id WHERE {where} GROUP BY 1",
    )
    found = {row["day"]: Day(row["day"], int(row["reports"]), int(row["alarms"])) for row in counted}
    for row in coded:
        found[row["day"]] = replace(found[row["day"]], score=row["score"], nil=float(row["nil"]))
    every = (start + timedelta(days=i) for i in range(DAYS))
    return [found.get(day) or Day(day) for day in every]


def charts(days: Sequence[Day]) -> list[Chart]:
    most = max(1, *(day.reports for day in days))
    return [
        Chart("Reports", most, [day.reports for day in days], bars=True),
        Chart("Alarm rate: share of the reports with an affirmed event", 1, [day.rate for day in days]),
        Chart("Drift: mean cosine of events and their terms", 1, [day.score for day in days]),
        Chart("Drift: share of the events without a code", 1, [day.nil for day in days]),
    ]


def releases(database: Database, start: date) -> Rows:
    """The sets of releases that first worked on a report since `start`, each with that `day`, and its place
    in a chart as `x`.
    """
    found = rows(
        database,
        "SELECT releases, min(received_at) AS first FROM reports WHERE NOT deleted GROUP BY releases",
    )
    made = []
    for row in sorted(found, key=lambda row: row["first"] or datetime.min):
        day = row["first"].date() if row["first"] else date.min
        place = (day - start).days
        if 0 <= place < DAYS:
            named = orjson.loads(row["releases"] or "{}")
            made.append({"day": day, "x": (place + 0.5) * WIDTH / DAYS, "releases": named})
    return made


def terms(database: Database, drug: str, end: date) -> Rows:
    """The terms with the most reports in the last PERIOD days, each with those of the days before, and
    whether it `rises`: 1, -1 where it falls, and 0 where chance may have made the difference.
    """
    start, before = (end - timedelta(days=PERIOD * n - 1) for n in (1, 2))
    of_drug = f" AND drug = {quoted(drug)}" if drug else ""
    found = rows(
        database,
        f"SELECT pt, count(DISTINCT CASE WHEN reported_at >= '{start}' THEN report_id END) AS now, "
        f"count(DISTINCT CASE WHEN reported_at < '{start}' THEN report_id END) AS before "
        f"FROM pairs WHERE {COUNTED} AND reported_at >= '{before}'{of_drug} "
        f"GROUP BY pt ORDER BY now DESC, before DESC, pt LIMIT {TERMS}",
    )
    for row in found:
        both, difference = row["now"] + row["before"], row["now"] - row["before"]
        is_sure = abs(difference) > SURE * math.sqrt(both)
        row["rises"] = int(math.copysign(1, difference)) if is_sure else 0
    return found


def heat(database: Database) -> tuple[list[str], list[tuple[str, list[tuple[int, int]]]]]:
    """The organ classes, and each drug with its reports in these classes and the step of their colour."""
    found = rows(
        database,
        f"SELECT drug, soc, count(DISTINCT report_group) AS n FROM pairs WHERE {COUNTED} "
        "AND soc IS NOT NULL AND soc <> '' GROUP BY drug, soc",
    )
    numbers = {(row["drug"], row["soc"]): int(row["n"]) for row in found}
    drugs, classes = (_largest(numbers, side) for side in (0, 1))
    most = max(numbers.values(), default=1)

    def cell(n: int) -> tuple[int, int]:
        return n, math.ceil(STEPS * math.log1p(n) / math.log1p(most)) if n else 0

    return classes, [(drug, [cell(numbers.get((drug, soc), 0)) for soc in classes]) for drug in drugs]


def _largest(numbers: Mapping[tuple[str, str], int], side: int) -> list[str]:
    totals: Counter[str] = Counter()
    for pair, n in numbers.items():
        totals[pair[side]] += n
    return [name for name, _ in sorted(totals.items(), key=lambda item: (-item[1], item[0]))[:SIDE]]


def forest(signals: Iterable[Signal]) -> list[dict[str, Any]]:
    """Each signal with its IC and the places of the interval and of zero in its box."""
    limits = [(signal, signal.windows["all"].ic) for signal in signals]
    low = min((0.0, *(ic.low for _, ic in limits)))
    high = max((1.0, *(ic.high for _, ic in limits)))

    def x(value: float) -> float:
        return 4 + (value - low) / (high - low) * (INTERVAL - 8)

    return [
        {"signal": signal, "ic": ic, "zero": x(0), "low": x(ic.low), "high": x(ic.high), "x": x(ic.value)}
        for signal, ic in limits
    ]


ROUTES = [web.get("/figures", figures)]
