"""The information component with shrinkage (Norén, Hopstadius and Bate 2013)."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaincinv

from streams.signals.statistics.ratios import LEVEL, Interval
from streams.signals.statistics.tables import Floats

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
