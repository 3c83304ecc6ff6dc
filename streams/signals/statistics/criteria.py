"""What makes a statistic a signal: named criteria, and the control of false discoveries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streams.signals.statistics.mixture import Mixture
from streams.signals.statistics.ratios import (
    Counts,
    Floats,
    Interval,
    chi_square,
    information_component,
    mid_p,
    prr,
    ror,
)

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Statistics:
    """All statistics of some pairs; arrays of one length."""

    counts: Counts
    expected: Floats
    prr: Interval
    chi_square: Floats
    chi_square_yates: Floats
    ror: Interval
    ic: Interval
    ebgm: Interval
    """EBGM with EB05 and EB95."""


def evaluate(counts: Counts, prior: Mixture) -> Statistics:
    """The statistics of the pairs, EBGM under this prior."""
    expected = counts.expected
    ebgm = Interval(
        prior.ebgm(counts.n, expected),
        prior.quantile(counts.n, expected, 0.05),
        prior.quantile(counts.n, expected, 0.95),
    )
    return Statistics(
        counts, expected, prr(counts), chi_square(counts), chi_square(counts, yates=True), ror(counts),
        information_component(counts.n, expected), ebgm,
    )  # fmt: skip


def evans(s: Statistics) -> Flags:
    """At least 3 reports, PRR at least 2 and chi-square with Yates' correction at least 4 (Evans 2001)."""
    return (s.counts.n >= 3) & (s.prr.value >= 2) & (s.chi_square_yates >= 4)  # noqa: PLR2004


def ror_low(s: Statistics) -> Flags:
    """At least 3 reports and the lower limit of the ROR above 1."""
    return (s.counts.n >= 3) & (s.ror.low > 1)  # noqa: PLR2004


def ic_low(s: Statistics) -> Flags:
    """The lower limit of the information component above 0."""
    return s.ic.low > 0


def eb_low(s: Statistics) -> Flags:
    """EB05 at least 2."""
    return s.ebgm.low >= 2  # noqa: PLR2004


#: Names as the options, the records and the page use them.
CRITERIA: dict[str, Callable[[Statistics], Flags]] = {
    "evans": evans,
    "ror025": ror_low,
    "ic025": ic_low,
    "eb05": eb_low,
}


def benjamini_hochberg(p: Floats, rate: float) -> Flags:
    """Which hypotheses are rejected so that at most `rate` of them are expected to be true (1995)."""
    if not len(p):
        return np.zeros(0, bool)
    order = np.argsort(p)
    passed = np.flatnonzero(p[order] <= rate * np.arange(1, len(p) + 1) / len(p))
    rejected = np.zeros(len(p), bool)
    if len(passed):
        rejected[order[: passed[-1] + 1]] = True
    return rejected


def discoveries(counts: Counts, rate: float) -> Flags:
    """Pairs with more reports than independence gives, at this false discovery rate."""
    return benjamini_hochberg(mid_p(counts), rate)
