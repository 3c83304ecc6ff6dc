"""The signals as the page shows them: recomputed at most once a minute, filtered and sorted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from streams.records import Signal, WatchState, WindowStatistics
from streams.signals.population import WINDOWS, Pair, Population
from streams.signals.states import STATES, Standing, standing_of
from streams.signals.surveillance import Options, Outcome, Surveillance
from streams.store.database import Database, DatabaseError
from streams.web.access import NAME_LENGTH
from streams.web.store_queries import StoreQueries, rows

#: Age in seconds from which a request has the signals computed again.
FRESH_SECONDS = 60.0
SHOWN = 100
#: The order where none is chosen; it depends on no prior.
SORT = "ic025"
SORTS: dict[str, Callable[[Row], Any]] = {
    "ic025": lambda row: -row.s.ic.low,
    "eb05": lambda row: -row.s.ebgm.low,
    "prr": lambda row: -row.s.prr.value,
    "ror": lambda row: -row.s.ror.value,
    "n": lambda row: -row.s.n,
    "drug": lambda row: row.signal.drug,
    "term": lambda row: row.signal.term,
    "state": lambda row: (STATES.index(row.standing.status.state), -row.s.ic.low),
    "due": lambda row: (row.standing.status.due or date.max, -row.s.ic.low),
}
#: Width and height of a sparkline in pixels.
SPARK = (120, 24)


@dataclass(frozen=True, slots=True)
class SignalFilter:
    """Filter and order of the table; an empty text is no filter."""

    drug: str = ""
    term: str = ""
    soc: str = ""
    window: str = "all"
    sort: str = SORT
    all_reports: bool = False
    """Each report counts, also repeats of a case."""
    state: str = ""
    owner: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> SignalFilter:
        """From the query string of a URL; an unknown value becomes the default."""
        window, sort = query.get("window", "all"), query.get("sort", SORT)
        return cls(
            query.get("drug", "")[:200], query.get("term", "")[:200], query.get("soc", "")[:200],
            window if window in WINDOWS else "all", sort if sort in SORTS else SORT,
            query.get("count") == "all", query.get("state", ""), query.get("owner", "")[:NAME_LENGTH],
        )  # fmt: skip


@dataclass(slots=True)
class _Kept:
    """The last computation for a population."""

    outcome: Outcome | None = None
    computed_at: float = 0.0
    renewal: asyncio.Task[None] | None = None


class Signals:
    """The signals of the last computations: of unique reports, and of all where that was asked for."""

    def __init__(self, queries: StoreQueries) -> None:
        """`queries` must not be shared: a computation takes seconds, and other queries would wait for it."""
        self._queries = queries
        self._lock = asyncio.Lock()
        self._kept = {False: _Kept(), True: _Kept()}
        self.organ_classes: dict[str, str] = {}
        """Preferred term to organ class."""

    async def outcome(self, *, all_reports: bool = False) -> Outcome:
        """The last outcome; only the first computation is waited for, later ones run in the background."""
        async with self._lock:
            kept = self._kept[all_reports]
            if kept.outcome is None:
                await self._renew(all_reports=all_reports)
            elif time.monotonic() - kept.computed_at > FRESH_SECONDS and (
                kept.renewal is None or kept.renewal.done()
            ):
                kept.renewal = asyncio.create_task(self._renew(all_reports=all_reports))
            assert kept.outcome is not None
            return kept.outcome

    async def start(self) -> None:
        """Computes them in advance; if the store cannot be read yet, the first request computes them."""
        with suppress(DatabaseError):
            await self.outcome()

    async def close(self) -> None:
        """Closes the store when the running computations are done."""
        for kept in self._kept.values():
            if kept.renewal is not None:
                with suppress(DatabaseError):
                    await kept.renewal
        await self._queries.close()

    async def _renew(self, *, all_reports: bool) -> None:
        options = Options(Population(all_reports=all_reports))
        kept = self._kept[all_reports]
        kept.outcome = await self._queries.run(lambda database: self._compute(database, options))
        kept.computed_at = time.monotonic()

    def _compute(self, database: Database, options: Options) -> Outcome:
        self.organ_classes = {
            row["pt"]: row["soc"] for row in rows(database, "SELECT DISTINCT pt, soc FROM pairs")
        }
        return Surveillance(database, options).compute(datetime.now(UTC))


@dataclass(frozen=True, slots=True)
class Row:
    """A signal with its statistics in the window that is shown."""

    signal: Signal
    s: WindowStatistics
    standing: Standing


def select(
    outcome: Outcome,
    chosen: SignalFilter,
    organ_classes: Mapping[str, str],
    standings: Mapping[Pair, Standing],
) -> list[Row]:
    """The signals that pass the filter, whatever their states, sorted."""
    found = [
        Row(signal, signal.windows[chosen.window], standing)
        for signal in outcome.signals
        if chosen.window in signal.windows
        and chosen.drug.lower() in signal.drug.lower()
        and chosen.term.lower() in signal.term.lower()
        and chosen.soc in {"", organ_classes.get(signal.term)}
        and chosen.owner in {"", (standing := standing_of(standings, signal)).status.owner}
    ]
    return sorted(found, key=SORTS[chosen.sort])


def sparkline(watch: WatchState | None) -> dict[str, str] | None:
    """Points of two SVG lines: the weekly counts, and those that were expected."""
    if watch is None or not watch.weeks:
        return None
    top = max(1.0, *watch.n, *watch.expected)
    width, height = SPARK
    step = width / max(1, len(watch.weeks) - 1)

    def points(values: tuple[float, ...]) -> str:
        return " ".join(
            f"{i * step:.0f},{height - 2 - v / top * (height - 4):.1f}" for i, v in enumerate(values)
        )

    label = f"{sum(watch.n)} reports in {len(watch.weeks)} weeks, {sum(watch.expected):.1f} expected"
    return {"n": points(tuple(map(float, watch.n))), "expected": points(watch.expected), "label": label}
