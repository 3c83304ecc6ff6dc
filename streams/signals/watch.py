"""The weekly watch: a sequential test of each pair over the weeks since it began."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np

from streams.signals.population import WEEK, Pair, Population, strata
from streams.signals.statistics.criteria import Flags
from streams.signals.statistics.maxsprt import ALPHA, critical_value, log_likelihood_ratio
from streams.signals.statistics.tables import Floats
from streams.store.database import Database

#: Expected reports after which the watch of a pair ends, and reports that it needs for a signal.
LIMIT = 10.0
LEAST = 3
WEEKS = 13


@dataclass(frozen=True, slots=True)
class Watched:
    """The state of each pair after the last week."""

    weeks: list[str]
    n: Floats
    """Pairs x weeks."""
    expected: Floats
    """Pairs x weeks, from the margins of each week."""
    ratio: Floats
    """Log likelihood ratio of the sums."""
    critical: float
    signalled: Flags
    """Whether the ratio reached the critical value in any week before LIMIT reports were expected."""


def watch(
    database: Database, population: Population, pairs: Sequence[Pair], now: datetime, alpha: float = ALPHA
) -> Watched:
    """Tests the pairs over the last WEEKS weeks. Looking once a week at a test for continuous looking errs
    on the safe side. Alpha is that of each pair: of many pairs some signal by chance.
    """
    began = _monday(now) - timedelta(weeks=WEEKS - 1)
    by_week = strata(database, replace(population, start=began, stop=now, first=True), pairs, WEEK)
    return sequential_test(by_week.names, by_week.n, by_week.expected, alpha)


def sequential_test(weeks: list[str], n: Floats, expected: Floats, alpha: float = ALPHA) -> Watched:
    """The sequential test over counts and expectations by week."""
    critical = critical_value(LIMIT, alpha, LEAST)
    sums, means = np.cumsum(n, axis=1), np.cumsum(expected, axis=1)
    ratios = log_likelihood_ratio(sums, means)
    reached = (ratios >= critical) & (means <= LIMIT) & (sums >= LEAST)
    last = ratios[:, -1] if len(weeks) else np.zeros(len(n))
    signalled: Flags = np.any(reached, axis=1)
    return Watched(weeks, n, expected, last, critical, signalled)


def _monday(time: datetime) -> datetime:
    day = time.astimezone(UTC) - timedelta(days=time.astimezone(UTC).weekday())
    return day.replace(hour=0, minute=0, second=0, microsecond=0)
