"""Computes the signals of a store: every window, the criteria, the weekly watch, as records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np

from models.drugs.uses import bundled_uses
from streams.records import History, Limits, Signal, SignalState, WatchState, WindowStatistics
from streams.signals.history import Past, past
from streams.signals.population import WINDOWS, Pair, Population, count, without_language
from streams.signals.states import standing_of, standings
from streams.signals.statistics.criteria import CRITERIA, Statistics, discoveries, evaluate
from streams.signals.statistics.fitting import prior_of
from streams.signals.statistics.maxsprt import ALPHA
from streams.signals.statistics.mixture import Mixture
from streams.signals.statistics.ratios import Interval
from streams.signals.watch import Watched, watch
from streams.store.database import Database
from streams.store.decisions import signal_decisions

#: Stands with every signal.
CAVEAT = (
    "A disproportionality is no evidence that a drug causes an event. The WEB-RADR project found it in "
    "general social media no better than chance (areas under the curve of 0.47 to 0.53) and does not "
    "recommend it for broad detection; its niches are exposure in pregnancy, abuse and misuse."
)
#: Name of the criterion of Benjamini and Hochberg.
FDR = "fdr"
DECIMALS = 4


@dataclass(frozen=True, slots=True)
class Options:
    """What is counted and listed."""

    population: Population = field(default_factory=Population)
    stratified: bool = False
    least: int = 3
    """Reports that a pair must have to be listed."""
    fdr: float | None = None
    """False discovery rate of the criterion `fdr`; None: not computed."""
    alpha: float = ALPHA
    """Of the weekly watch, for each pair."""
    criterion: str | None = None
    """Only pairs that meet it over all time are listed; None: all."""


@dataclass(frozen=True, slots=True)
class Window:
    """What the statistics of a window were made from."""

    reports: int
    pairs: int
    prior: Mixture
    prior_is_fitted: bool

    @property
    def prior_note(self) -> str:
        """Stands with EBGM where its prior is not fitted; else empty."""
        if self.prior_is_fitted:
            return ""
        return "EBGM has the prior that DuMouchel (1999) published: the pairs are too few to fit one."


@dataclass(frozen=True, slots=True)
class Outcome:
    """The signals of one computation, those of the largest IC025 over all time first."""

    computed_at: datetime
    options: Options
    windows: dict[str, Window]
    signals: list[Signal]
    changed: frozenset[Pair]
    """Pairs of which the number of reports or the state is not that of the computation before; of the first
    one all.
    """
    without_language: int = 0
    """Reports that are left out because the population is of one language and they state none."""


@dataclass(frozen=True, slots=True)
class _Found:
    """The statistics of all pairs of a window, with their places."""

    places: dict[Pair, int]
    statistics: Statistics
    prior: Mixture
    prior_is_fitted: bool
    of_pairs: Sequence[tuple[int, int]]
    """All reports, and unique ones, at each place."""


class Surveillance:
    """Computes the signals, and which pairs have not the number of reports that they had the time before."""

    def __init__(self, database: Database, options: Options) -> None:
        self.database = database
        self._options = options
        self._before: dict[str, dict[Pair, float]] = {}
        self._states: dict[Pair, SignalState] = {}

    def compute(self, now: datetime) -> Outcome:
        """Counts the reports up to now. Deletions between two of its queries would leave a pair with more
        reports than its drug has.
        """
        with self.database.snapshot():
            return self._compute(now)

    def _compute(self, now: datetime) -> Outcome:
        windows, found, changed = {}, {}, set[Pair]()
        for name in WINDOWS:
            population = self._options.population.within(name, now)
            tables = count(self.database, population, stratified=self._options.stratified)
            prior, is_fitted = prior_of(tables.counts)
            places = {pair: i for i, pair in enumerate(tables.pairs)}
            found[name] = _Found(places, evaluate(tables.counts, prior), prior, is_fitted, tables.of_pairs)
            windows[name] = Window(tables.reports, len(tables.pairs), prior, is_fitted)
            reports = dict(zip(tables.pairs, tables.counts.n.tolist(), strict=True))
            changed |= {pair for pair, _ in reports.items() ^ self._before.get(name, {}).items()}
            self._before[name] = reports
        signals = self._with_states(self._signals(found, now))
        states = {(s.drug, s.term): s.state for s in signals if s.state is not None}
        changed |= {pair for pair, _ in states.items() ^ self._states.items()}
        self._states = states
        left_out = without_language(self.database, self._options.population.within("all", now))
        return Outcome(now, self._options, windows, signals, frozenset(changed), left_out)

    def _with_states(self, signals: list[Signal]) -> list[Signal]:
        """Only where all reports of all sources are counted do their numbers open a signal again."""
        population = self._options.population
        if population.level != "pt":
            return signals
        decided = standings(signal_decisions(self.database), signals if population == Population() else ())
        return [replace(s, state=standing_of(decided, s).state) for s in signals]

    def _signals(self, found: Mapping[str, _Found], now: datetime) -> list[Signal]:
        n = found["all"].statistics.counts.n
        listed = [pair for pair, i in found["all"].places.items() if n[i] >= self._options.least]
        if not listed:
            return []
        watched = watch(self.database, self._options.population, listed, now, self._options.alpha)
        gone = past(self.database, self._options.population, listed, now, found["all"].prior)
        by_window = {name: self._records(found[name], listed) for name in WINDOWS}
        signals = [
            Signal(
                drug=pair[0], term=pair[1], level=self._options.population.level, computed_at=now,
                windows={name: records[pair] for name, records in by_window.items() if pair in records},
                watch=_watch_state(watched, i), caveat=CAVEAT, known_use=bundled_uses().treats(*pair),
                history=_history(gone, i),
            )
            for i, pair in enumerate(listed)
        ]  # fmt: skip
        wanted = self._options.criterion
        if wanted is not None:
            signals = [s for s in signals if wanted in s.windows["all"].criteria]
        return sorted(signals, key=lambda s: (-s.windows["all"].ic.low, s.key))

    def _records(self, found: _Found, listed: Sequence[Pair]) -> dict[Pair, WindowStatistics]:
        flags = {name: criterion(found.statistics) for name, criterion in CRITERIA.items()}
        if self._options.fdr is not None:
            # Over all pairs of the window, not only those that are listed.
            flags[FDR] = discoveries(found.statistics.counts, self._options.fdr)
        places = {pair: found.places[pair] for pair in listed if pair in found.places}
        return {
            pair: _record(found, i, tuple(name for name, met in flags.items() if met[i]))
            for pair, i in places.items()
        }


def _record(found: _Found, i: int, criteria: tuple[str, ...]) -> WindowStatistics:
    s = found.statistics
    every, unique = found.of_pairs[i]
    return WindowStatistics(
        n=int(s.counts.n[i]), expected=_rounded(s.expected[i]), prr=_limits(s.prr, i),
        chi_square=_rounded(s.chi_square[i]), chi_square_yates=_rounded(s.chi_square_yates[i]),
        ror=_limits(s.ror, i), ic=_limits(s.ic, i), ebgm=_limits(s.ebgm, i), criteria=criteria,
        ebgm_prior="fitted" if found.prior_is_fitted else "published",
        all_reports=every, unique_reports=unique,
    )  # fmt: skip


def _limits(interval: Interval, i: int) -> Limits:
    return Limits(_rounded(interval.value[i]), _rounded(interval.low[i]), _rounded(interval.high[i]))


def _watch_state(watched: Watched, i: int) -> WatchState:
    return WatchState(
        weeks=tuple(watched.weeks), n=tuple(int(n) for n in watched.n[i]),
        expected=tuple(_rounded(e) for e in watched.expected[i]), ratio=_rounded(watched.ratio[i]),
        critical=_rounded(watched.critical[i]), signalled=bool(watched.signalled[i]),
    )  # fmt: skip


def _history(gone: Past, i: int) -> History:
    return History(
        weeks=tuple(gone.weeks), n=tuple(int(n) for n in gone.n[i]),
        ic025=tuple(map(_rounded, gone.ic025[i])), eb05=tuple(map(_rounded, gone.eb05[i])),
    )  # fmt: skip


def _rounded(value: float | np.float64) -> float:
    return round(float(value), DECIMALS)
