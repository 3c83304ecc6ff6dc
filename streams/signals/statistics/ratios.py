"""Counts of 2x2 tables, their ratios and tests of independence: PRR, ROR, IC, chi-square, Fisher's mid-P."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import gammaincinv, ndtri

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Counts:
    """Arrays of equal length, one entry for each pair, in reports."""

    n: Floats
    """Reports with the drug and the term."""
    drug: Floats
    """Reports with the drug."""
    term: Floats
    """Reports with the term."""
    total: Floats
    """All reports of the population."""
    stratified: Floats | None = None
    """Expected reports, summed over strata; None: from the margins."""

    def __len__(self) -> int:
        return len(self.n)

    @property
    def expected(self) -> Floats:
        """Reports that independence of drug and term would give: drug x term / total (DuMouchel 1999)."""
        return self.drug * self.term / self.total if self.stratified is None else self.stratified

    @property
    def cells(self) -> tuple[Floats, Floats, Floats, Floats]:
        """a: drug and term, b: drug without term, c: term without drug, d: neither."""
        b, c = self.drug - self.n, self.term - self.n
        return self.n, b, c, self.total - self.n - b - c


def counts_of(cells: Iterable[tuple[float, float, float, float]]) -> Counts:
    """Counts from the cells a, b, c, d of 2x2 tables."""
    a, b, c, d = np.asarray(list(cells), float).reshape(-1, 4).T
    return Counts(a, a + b, a + c, a + b + c + d)


LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """Estimates with the limits of their two-sided intervals."""

    value: Floats
    low: Floats
    high: Floats


def prr(counts: Counts, level: float = LEVEL) -> Interval:
    """Proportional reporting ratio (Evans et al. 2001): (a / (a + b)) / (c / (c + d)), with the interval of a
    relative risk on the logarithmic scale. Where a or c is zero, 0.5 is added to each cell.
    """
    a, b, c, d = _corrected(counts, counts.n * counts.cells[2] == 0)
    error = np.sqrt(1 / a - 1 / (a + b) + 1 / c - 1 / (c + d))
    return _around((a / (a + b)) / (c / (c + d)), error, level)


def ror(counts: Counts, level: float = LEVEL) -> Interval:
    """Reporting odds ratio (van Puijenbroek et al. 2002): ad / bc with Woolf's interval. Where a cell is
    zero, 0.5 is added to each (Haldane and Anscombe).
    """
    a, b, c, d = _corrected(counts, np.minimum.reduce(counts.cells) == 0)
    return _around(a * d / (b * c), np.sqrt(1 / a + 1 / b + 1 / c + 1 / d), level)


def chi_square(counts: Counts, *, yates: bool = False) -> Floats:
    """Pearson's chi-square with one degree of freedom, `yates`: with the correction for continuity. Zero
    where a margin is empty.
    """
    a, b, c, d = counts.cells
    distance = np.abs(a * d - b * c)
    if yates:
        distance = np.maximum(0, distance - counts.total / 2)
    margins = (a + b) * (c + d) * (a + c) * (b + d)
    found: Floats = np.zeros_like(margins)
    np.divide(counts.total * distance**2, margins, out=found, where=margins > 0)
    return found


def mid_p(counts: Counts) -> Floats:
    """One-sided mid-P value of Fisher's exact test for more reports than independence gives (Ahmed et al.
    2010, there for the control of false discoveries).
    """
    a, drug, term, total = counts.n, counts.drug, counts.term, counts.total
    law = scipy.stats.hypergeom(total, drug, term)
    tail: Floats = law.sf(a) + 0.5 * law.pmf(a)
    return tail


def _corrected(counts: Counts, where: np.typing.NDArray[np.bool_]) -> tuple[Floats, ...]:
    return tuple(cell + np.where(where, 0.5, 0.0) for cell in counts.cells)


def _around(value: Floats, error: Floats, level: float) -> Interval:
    factor = np.exp(ndtri(0.5 + level / 2) * error)
    return Interval(value, value / factor, value * factor)


#: Added to the observed and the expected count.
SHRINKAGE = 0.5


def information_component(n: Floats, expected: Floats, level: float = LEVEL) -> Interval:
    """log2((n + 1/2) / (E + 1/2)), and the exact limits of the gamma posterior with shape n + 1/2 and rate
    E + 1/2 on the same scale.
    """
    # The quantiles depend on the count alone, and few counts are different.
    distinct, place = np.unique(n, return_inverse=True)
    shape = distinct + SHRINKAGE
    rate = np.log2(expected + SHRINKAGE)
    tail = (1 - level) / 2
    low, high = (np.log2(gammaincinv(shape, p)) for p in (tail, 1 - tail))
    return Interval(np.log2(shape)[place] - rate, low[place] - rate, high[place] - rate)
