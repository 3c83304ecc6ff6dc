"""The signals as the page shows them: recomputed at most once a minute, filtered and sorted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from datetime import UTC, date, datetime
from math import log2
from typing import Any

from streams.records import History, Signal, WatchState, WindowStatistics
from streams.settings import Settings
from streams.signals.facts import FLAGS, NEW, Facts, facts, flags_of
from streams.signals.lists import NICHES, Lists, load
from streams.signals.population import WINDOWS, Pair, Population
from streams.signals.states import STATES, Standing, standing_of
from streams.signals.surveillance import Options, Outcome, Surveillance
from streams.store.database import Database, DatabaseError
from streams.web.access import NAME_LENGTH
from streams.web.store_queries import StoreQueries, rows

#: Age in seconds from which a request has the signals computed again.
FRESH_SECONDS = 60.0
SHOWN = 100
#: In words, whether a label has a term.
LISTED: dict[bool | None, str] = {True: "yes", False: "no", None: "unknown"}
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
    "pregnancy and misuse first": lambda row: (not row.is_niche, -row.s.ic.low),
    "designated first": lambda row: ("designated" not in row.flags, -row.s.ic.low),
    "serious first": lambda row: ("serious" not in row.flags, -row.s.ic.low),
    f"{NEW} first": lambda row: (NEW not in row.flags, -row.s.ic.low),
    "listed": lambda row: ((False, None, True).index(row.is_listed), -row.s.ic.low),
    "completeness": lambda row: (-(row.facts.complete or 0.0), -row.s.ic.low),
    "due": lambda row: (row.standing.status.due or date.max, -row.s.ic.low),
}
#: Of CSV.
COLUMNS = (
    "drug", "term", "known_use", "state", "reopened", "owner", "due", "listed", "flags", "all_reports",
    "unique_reports", "expected", "ic", "ic025", "ic975", "ebgm", "eb05", "eb95", "prr", "prr_low",
    "prr_high", "ror", "ror_low", "ror_high", "criteria", "watch", "complete", "countries",
)  # fmt: skip
#: Width and height of a sparkline in pixels.
SPARK = (120, 24)
#: Logarithms of ratios beyond which a sparkline is cut.
LOWEST, HIGHEST = -4.0, 6.0


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
    flag: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> SignalFilter:
        """From the query string of a URL; an unknown value becomes the default."""
        window, sort = query.get("window", "all"), query.get("sort", SORT)
        state, flag = query.get("state", ""), query.get("flag", "")
        return cls(
            query.get("drug", "")[:200], query.get("term", "")[:200], query.get("soc", "")[:200],
            window if window in WINDOWS else "all", sort if sort in SORTS else SORT,
            query.get("count") == "all", state if state in STATES else "",
            query.get("owner", "")[:NAME_LENGTH], flag if flag in FLAGS else "",
        )  # fmt: skip


@dataclass(slots=True)
class _Kept:
    """The last computation for a population."""

    outcome: Outcome | None = None
    computed_at: float = 0.0
    renewal: asyncio.Task[None] | None = None


class Signals:
    """The signals of the last computations: of unique reports, and of all where that was asked for."""

    def __init__(self, settings: Settings) -> None:
        """Opens queries of its own: a computation takes seconds, and others would wait for it."""
        self._settings = settings
        self._queries = StoreQueries(settings)
        self._lock = asyncio.Lock()
        self._kept = {False: _Kept(), True: _Kept()}
        self.organ_classes: dict[str, str] = {}
        """Preferred term to organ class."""
        self.serious: set[str] = set()
        """Preferred terms of which events are serious."""
        self.facts: dict[Pair, Facts] = {}
        self.lists = Lists({}, {})
        self.renewed = asyncio.Event()
        """Set after each computation from unique reports."""

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
        if not all_reports:
            self.renewed.set()

    def _compute(self, database: Database, options: Options) -> Outcome:
        found = rows(database, "SELECT DISTINCT pt, soc, serious FROM pairs")
        self.organ_classes = {row["pt"]: row["soc"] for row in found}
        self.serious = {row["pt"] for row in found if row["serious"]}
        self.facts, self.lists = facts(database), load(self._settings)
        return Surveillance(database, options).compute(datetime.now(UTC))


@dataclass(frozen=True, slots=True)
class Row:
    """A signal with its statistics in the window that is shown."""

    signal: Signal
    s: WindowStatistics
    standing: Standing
    flags: tuple[str, ...]
    facts: Facts
    is_listed: bool | None
    """Whether the label of the drug has the term; None where no label is loaded."""

    @property
    def listed(self) -> str:
        return LISTED[self.is_listed]

    @property
    def is_niche(self) -> bool:
        return not {*NICHES}.isdisjoint(self.flags)


def select(
    known: Signals, outcome: Outcome, chosen: SignalFilter, standings: Mapping[Pair, Standing]
) -> list[Row]:
    """The signals that pass the filter, whatever their states, sorted."""
    found = [
        Row(
            signal,
            signal.windows[chosen.window],
            standing,
            flags_of(signal, known.lists, serious=signal.term in known.serious),
            known.facts.get((signal.drug, signal.term), Facts()),
            known.lists.is_listed(signal.drug, signal.term),
        )
        for signal in outcome.signals
        if chosen.window in signal.windows
        and chosen.drug.lower() in signal.drug.lower()
        and chosen.term.lower() in signal.term.lower()
        and chosen.soc in {"", known.organ_classes.get(signal.term)}
        and chosen.owner in {"", (standing := standing_of(standings, signal)).status.owner}
    ]
    flagged = [row for row in found if chosen.flag in {"", *row.flags}]
    return sorted(flagged, key=SORTS[chosen.sort])


def table(chosen: Iterable[Row]) -> Iterator[tuple[Any, ...]]:
    """COLUMNS, and their values in each row."""
    yield COLUMNS
    for row in chosen:
        signal, s, status = row.signal, row.s, row.standing.status
        yield (
            signal.drug, signal.term, signal.known_use, status.state, row.standing.reopened, status.owner,
            status.due, row.listed, "; ".join(row.flags),
            s.all_reports, s.unique_reports, s.expected,
            *(cell for limits in (s.ic, s.ebgm, s.prr, s.ror) for cell in astuple(limits)),
            "; ".join(s.criteria), signal.watch.signalled if signal.watch else None, row.facts.complete,
            "; ".join(f"{country} {n}" for country, n in row.facts.countries),
        )  # fmt: skip


def sparkline(watch: WatchState | None) -> dict[str, str] | None:
    """Points of two SVG lines: the weekly counts, and those that were expected."""
    if watch is None or not watch.weeks:
        return None
    label = f"{sum(watch.n)} reports in {len(watch.weeks)} weeks, {sum(watch.expected):.1f} expected"
    counts, expected = _lines((watch.n, watch.expected), 0.0, max(1.0, *watch.n, *watch.expected))
    return {"n": counts, "expected": expected, "label": label}


def limits_line(history: History | None) -> dict[str, str] | None:
    """Points of IC025 and of the logarithm of EB05 to the base 2, by week on one axis."""
    if history is None or not history.weeks:
        return None
    ic025 = [min(max(value, LOWEST), HIGHEST) for value in history.ic025]
    eb05 = [min(max(log2(max(value, 1e-9)), LOWEST), HIGHEST) for value in history.eb05]
    label = (
        f"IC025 from {history.ic025[0]:.2f} to {history.ic025[-1]:.2f}, EB05 from {history.eb05[0]:.2f} to "
        f"{history.eb05[-1]:.2f} in {len(history.weeks)} weeks"
    )
    lines = _lines((ic025, eb05), min(0.0, *ic025, *eb05), max(1.0, *ic025, *eb05))
    return {"ic025": lines[0], "eb05": lines[1], "label": label}


def _lines(series: Sequence[Sequence[float]], bottom: float, top: float) -> list[str]:
    width, height = SPARK
    step = width / max(1, len(series[0]) - 1)
    scale = (height - 4) / (top - bottom)
    return [
        " ".join(f"{i * step:.0f},{height - 2 - (v - bottom) * scale:.1f}" for i, v in enumerate(values))
        for values in series
    ]
