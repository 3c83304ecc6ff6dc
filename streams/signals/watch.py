"""The weekly watch: a sequential test of each pair over the weeks since it began."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np

from streams.signals.population import WEEK, Pair, Population, strata
from streams.signals.statistics.criteria import Flags
from streams.signals.statistics.maxsprt import ALPHA, critical_value, log_likelihood_ratio
from streams.signals.statistics.ratios import Floats
from streams.store.database import Database

#: Expected reports up to which a pair is watched: the first that those of the whole period do not exceed, so
#: that the last week is watched too. Critical values for more take too long to compute.
LIMITS = np.array([10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0])
#: Reports that a pair needs for a signal.
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
    critical: Floats
    """Of the limit of each pair."""
    signalled: Flags
    """Whether the ratio reached the critical value in any week before more reports than the limit were
    expected.
    """


def watch(
    database: Database, population: Population, pairs: Sequence[Pair], now: datetime, alpha: float = ALPHA
) -> Watched:
    """Tests the pairs over the last WEEKS weeks. Looking once a week at a test for continuous looking errs
    on the safe side. Alpha is that of each pair in one such period: of many pairs some signal by chance, and
    next week the test begins anew with a later period.
    """
    began = monday(now) - timedelta(weeks=WEEKS - 1)
    found = strata(database, replace(population, start=began, stop=now, first=True), pairs, WEEK)
    weeks = [str((began + timedelta(weeks=i)).date()) for i in range(WEEKS)]
    n, expected = np.zeros((len(pairs), WEEKS)), np.zeros((len(pairs), WEEKS))
    with_reports = [weeks.index(week) for week in found.names]
    n[:, with_reports], expected[:, with_reports] = found.n, found.expected
    return sequential_test(weeks, n, expected, alpha)


def sequential_test(weeks: list[str], n: Floats, expected: Floats, alpha: float = ALPHA) -> Watched:
    """The sequential test over counts and expectations by week."""
    sums, means = np.cumsum(n, axis=1), np.cumsum(expected, axis=1)
    of_period = means[:, -1] if len(weeks) else np.zeros(len(n))
    places = np.minimum(np.searchsorted(LIMITS, of_period), len(LIMITS) - 1)
    values = {place: critical_value(float(LIMITS[place]), alpha, LEAST) for place in set(places.tolist())}
    critical = np.array([values[place] for place in places.tolist()])
    ratios = log_likelihood_ratio(sums, means)
    reached = (ratios >= critical[:, None]) & (means <= LIMITS[places][:, None]) & (sums >= LEAST)
    last = ratios[:, -1] if len(weeks) else np.zeros(len(n))
    signalled: Flags = np.any(reached, axis=1)
    return Watched(weeks, n, expected, last, critical, signalled)


def monday(time: datetime) -> datetime:
    """When the week of a time began."""
    day = time.astimezone(UTC) - timedelta(days=time.astimezone(UTC).weekday())
    return day.replace(hour=0, minute=0, second=0, microsecond=0)
