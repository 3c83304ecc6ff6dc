"""Incremental statistics: only pairs whose counts changed are recomputed, until the prior is refitted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from streams.signals.population import Pair, Tables
from streams.signals.statistics.criteria import Statistics, evaluate
from streams.signals.statistics.fitting import DEFAULT, NotEnoughPairs, fit
from streams.signals.statistics.ratios import Counts, Floats, Interval

#: Columns of the counts, and of what is computed from them.
COUNTED = 5
COMPUTED = 15


class LiveStatistics:
    """Counts and statistics of all pairs of a window. Between two fits of the prior the statistics of a pair
    whose number of reports is unchanged stay as they are, although its margins grow.
    """

    def __init__(self, tables: Tables) -> None:
        self.pairs: list[Pair] = []
        self.prior = DEFAULT
        self.is_fitted = False
        """Whether the prior comes from the pairs; else there were too few of them."""
        self._rows: dict[Pair, int] = {}
        self._counted = np.empty((0, COUNTED))
        self._computed = np.empty((0, COMPUTED))
        self._put(tables.pairs, tables.counts)
        self.refit()

    def refit(self) -> None:
        """Refits the prior, starting at the last fit too, and recomputes every pair that has a report."""
        rows = np.flatnonzero(self._counted[: len(self.pairs), 0] > 0)
        present = self._counts(rows)
        try:
            self.prior = fit(present.n, present.expected, self.prior if self.is_fitted else None)
            self.is_fitted = True
        except NotEnoughPairs:
            self.prior, self.is_fitted = DEFAULT, False
        self._computed[rows] = _columns(evaluate(present, self.prior))

    def change(self, pairs: Sequence[Pair], counts: Counts) -> None:
        """Sets the counts of some pairs, known ones or new ones, and computes these under the last prior."""
        rows = self._put(pairs, counts)
        self._computed[rows] = _columns(evaluate(counts, self.prior))

    def adopt(self, tables: Tables) -> list[Pair]:
        """Takes over a new count of everything; returns the pairs whose number of reports changed, which are
        the only ones that are computed. A pair that no report has any more gets the count 0.
        """
        n, known = tables.counts.n, self._rows
        before = self._counted[:, 0]
        changed = [
            i for i, pair in enumerate(tables.pairs) if pair not in known or before[known[pair]] != n[i]
        ]
        without_reports = [p for p in known.keys() - set(tables.pairs) if before[known[p]] > 0]
        touched = [tables.pairs[i] for i in changed]
        # The margins of all pairs, for the next fit.
        self._put(tables.pairs, tables.counts)
        if touched:
            self.change(touched, tables.counts.take(np.array(changed)))
        self._counted[[known[pair] for pair in without_reports], 0] = 0
        return touched + without_reports

    def statistics(self, pairs: Sequence[Pair] | None = None) -> Statistics:
        """The statistics of some pairs, or of all in the order of `pairs`."""
        chosen = self.pairs if pairs is None else pairs
        rows = np.array([self._rows[pair] for pair in chosen], np.intp)
        return _statistics(self._counts(rows), self._computed[rows])

    def _put(self, pairs: Sequence[Pair], counts: Counts) -> NDArray[np.intp]:
        for pair in pairs:
            if pair not in self._rows:
                self._rows[pair] = len(self.pairs)
                self.pairs.append(pair)
        if len(self.pairs) > len(self._counted):
            # More room than is needed, so that most new pairs cost no copy.
            room = len(self.pairs) * 5 // 4 + 16
            self._counted, self._computed = _grown(self._counted, room), _grown(self._computed, room)
        rows = np.array([self._rows[pair] for pair in pairs], np.intp)
        columns = (counts.n, counts.drug, counts.term, counts.total, counts.expected)
        self._counted[rows] = np.column_stack(columns)
        return rows

    def _counts(self, rows: NDArray[np.intp]) -> Counts:
        return Counts(*self._counted[rows].T)


def _grown(array: Floats, rows: int) -> Floats:
    larger = np.zeros((rows, array.shape[1]))
    larger[: len(array)] = array
    return larger


def _columns(s: Statistics) -> Floats:
    limits = [x for i in (s.prr, s.ror, s.ic, s.ebgm) for x in (i.value, i.low, i.high)]
    return np.column_stack([s.expected, s.chi_square, s.chi_square_yates, *limits])


def _statistics(counts: Counts, columns: Floats) -> Statistics:
    expected, chi_square, yates, *limits = columns.T
    prr, ror, ic, ebgm = (Interval(*limits[i : i + 3]) for i in range(0, 12, 3))
    return Statistics(counts, expected, prr, chi_square, yates, ror, ic, ebgm)
