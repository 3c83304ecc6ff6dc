"""The signals as the page shows them: recomputed at most once a minute, filtered and sorted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from streams.records import Signal, WatchState, WindowStatistics
from streams.signals.population import WINDOWS
from streams.signals.surveillance import Options, Outcome, Surveillance
from streams.store.database import Database, DatabaseError
from streams.web.store_queries import StoreQueries, rows

#: Age in seconds from which a request has the signals computed again.
FRESH_SECONDS = 60.0
SHOWN = 100
#: The order where none is chosen; it depends on no prior.
SORT = "ic025"
SORTS: dict[str, Callable[[Signal, WindowStatistics], float | str]] = {
    "ic025": lambda _, s: -s.ic.low,
    "eb05": lambda _, s: -s.ebgm.low,
    "prr": lambda _, s: -s.prr.value,
    "ror": lambda _, s: -s.ror.value,
    "n": lambda _, s: -s.n,
    "drug": lambda signal, _: signal.drug,
    "term": lambda signal, _: signal.term,
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

    @classmethod
    def of(cls, query: Mapping[str, str]) -> SignalFilter:
        """From the query string of a URL; an unknown value becomes the default."""
        window, sort = query.get("window", "all"), query.get("sort", SORT)
        return cls(
            query.get("drug", "")[:200], query.get("term", "")[:200], query.get("soc", "")[:200],
            window if window in WINDOWS else "all", sort if sort in SORTS else SORT,
        )  # fmt: skip


class Signals:
    """The signals of the last computation."""

    def __init__(self, queries: StoreQueries) -> None:
        """`queries` must not be shared: a computation takes seconds, and other queries would wait for it."""
        self._queries = queries
        self._lock = asyncio.Lock()
        self._computed_at = 0.0
        self._renewal: asyncio.Task[None] | None = None
        self._outcome: Outcome | None = None
        self.organ_classes: dict[str, str] = {}
        """Preferred term to organ class."""

    async def outcome(self) -> Outcome:
        """The last outcome; only the first computation is waited for, later ones run in the background."""
        async with self._lock:
            if self._outcome is None:
                await self._renew()
            elif time.monotonic() - self._computed_at > FRESH_SECONDS and (
                self._renewal is None or self._renewal.done()
            ):
                self._renewal = asyncio.create_task(self._renew())
            assert self._outcome is not None
            return self._outcome

    async def start(self) -> None:
        """Computes them in advance; if the store cannot be read yet, the first request computes them."""
        with suppress(DatabaseError):
            await self.outcome()

    async def close(self) -> None:
        """Closes the store when the running computation is done."""
        if self._renewal is not None:
            with suppress(DatabaseError):
                await self._renewal
        await self._queries.close()

    async def _renew(self) -> None:
        self._outcome = await self._queries.run(self._compute)
        self._computed_at = time.monotonic()

    def _compute(self, database: Database) -> Outcome:
        self.organ_classes = {
            row["pt"]: row["soc"] for row in rows(database, "SELECT DISTINCT pt, soc FROM pairs")
        }
        return Surveillance(database, Options()).compute(datetime.now(UTC))

    def select(self, outcome: Outcome, chosen: SignalFilter) -> list[tuple[Signal, WindowStatistics]]:
        """The signals that pass the filter, sorted, with their statistics in the window."""
        pairs = [
            (signal, signal.windows[chosen.window])
            for signal in outcome.signals
            if chosen.window in signal.windows
            and chosen.drug.lower() in signal.drug.lower()
            and chosen.term.lower() in signal.term.lower()
            and chosen.soc in {"", self.organ_classes.get(signal.term)}
        ]
        return sorted(pairs, key=lambda pair: SORTS[chosen.sort](*pair))


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
