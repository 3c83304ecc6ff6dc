"""Ratios of a 2x2 table and tests of independence: PRR, ROR, chi-square, Fisher's mid-P."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from scipy.special import ndtri

from streams.signals.statistics.tables import Counts, Floats

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
