"""What the statistics of each pair were at the end of each of the last weeks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np

from streams.signals.population import Pair, Population, literal, strata
from streams.signals.statistics.mixture import Mixture
from streams.signals.statistics.ratios import Floats, information_component
from streams.signals.watch import WEEKS
from streams.store.database import Database

#: Reports that no pair of a week has yet: none expected has no logarithm.
LEAST_EXPECTED = 1e-9


@dataclass(frozen=True, slots=True)
class Past:
    """Pairs x weeks: unique reports up to the end of the week, and the lower limits that they gave."""

    weeks: list[str]
    n: Floats
    ic025: Floats
    eb05: Floats


def past(
    database: Database, population: Population, pairs: Sequence[Pair], now: datetime, prior: Mixture
) -> Past:
    """Of all reports up to the end of each of the last WEEKS weeks, under today's prior. A week is seven days
    that end at the time of day of `now`, the last one now. Reports of one case count from the first of them
    on. Expected counts are not stratified.
    """
    began = [now - timedelta(weeks=i + 1) for i in range(WEEKS + 1)]
    weeks = [str(day.astimezone(UTC).date()) for day in began]
    since = zip(map(literal, began), weeks, strict=True)
    cases = [f"WHEN reported_at >= {day} THEN '{week}'" for day, week in since]
    week = f"CASE {' '.join(cases[:-1])} ELSE '{weeks[-1]}' END"
    weeks.reverse()
    found = strata(database, replace(population, start=None, stop=now), pairs, week)
    columns = [weeks.index(name) for name in found.names]

    def up_to_each(counts: Floats) -> Floats:
        by_week = np.zeros((*counts.shape[:-1], len(weeks)))
        by_week[..., columns] = counts
        sums: Floats = np.cumsum(by_week, axis=-1)[..., 1:]
        return sums

    n, total = up_to_each(found.n), up_to_each(found.sizes)
    margins = up_to_each(found.drug) * up_to_each(found.term)
    expected = np.maximum(np.divide(margins, total, out=np.zeros_like(n), where=total > 0), LEAST_EXPECTED)
    flat = n.ravel(), expected.ravel()
    ic025, eb05 = information_component(*flat).low, prior.quantile(*flat, 0.05)
    return Past(weeks[1:], n, ic025.reshape(n.shape), eb05.reshape(n.shape))
