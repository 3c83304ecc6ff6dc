"""Fits the prior of the gamma-Poisson shrinker to all pairs, over squashed data.

The likelihood alone decides little about five parameters: where pairs differ by chance only, it grows towards
two points, in which every pair gets the same ratio with an interval of no width. So the fit is that of
greatest posterior density under a wide distribution around the published prior. The more pairs, the less
this distribution counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from scipy.special import expit, logit

from streams.signals.statistics.mixture import Mixture, rows_by_count
from streams.signals.statistics.ratios import Counts, Floats

#: DuMouchel and Pregibon (2001) start from this prior.
DEFAULT = Mixture(0.2, 0.1, 2.0, 4.0, 1 / 3)
#: Places to start from: the likelihood may have several maxima.
STARTS = (DEFAULT, Mixture(2.0, 2.0, 0.5, 0.1, 0.9), Mixture(0.5, 0.5, 5.0, 5.0, 0.5))
#: Points that a count may have; more are squashed into so many.
POINTS = 200
#: Standard deviation of the logarithms of shapes and rates, and of the logit of the weight, about DEFAULT.
SPREAD = 1.0
#: Bounds of shapes and rates, as openEBGM's greatest value (`param_limit`), and of the weight.
SHAPES, WEIGHTS = (1e-3, 100.0), (1e-4, 1 - 1e-4)
BOUNDS = [tuple(np.log(SHAPES))] * 4 + [tuple(logit(WEIGHTS))]
#: Pairs, and pairs of at least REPEATED reports, without which nothing is fitted. In simulated tables with
#: fewer (about 3,000 reports) intervals under the published prior hold the true ratio, those under a fit are
#: too low for the few pairs that have an excess.
LEAST_PAIRS, LEAST_REPEATED, REPEATED = 2000, 100, 3


class NotEnoughPairs(ValueError):
    """Too few pairs to fit five parameters to."""


@dataclass(frozen=True, slots=True)
class Squashed:
    """Pairs of one count and of similar expectation, as one weighted point (DuMouchel and Pregibon 2001)."""

    n: Floats
    expected: Floats
    weight: Floats


def squash(n: Floats, expected: Floats, points: int = POINTS) -> Squashed:
    """For each count at most `points` points, each the geometric mean of the expected counts of equally many
    neighbours.
    """
    log_expected = np.log(expected)
    counts, means, weights = [], [], []
    for rows in rows_by_count(n):
        ordered = np.sort(log_expected[rows])
        edges = np.unique(np.linspace(0, len(ordered), points + 1).round().astype(int))
        sizes = np.diff(edges)
        means.append(np.exp(np.add.reduceat(ordered, edges[:-1]) / sizes))
        weights.append(sizes.astype(float))
        counts.append(np.full(len(sizes), n[rows[0]]))
    return Squashed(np.concatenate(counts), np.concatenate(means), np.concatenate(weights))


def prior_of(counts: Counts) -> tuple[Mixture, bool]:
    """The prior that fits these pairs, or the published one if they are too few, and whether it is fitted."""
    try:
        return fit(counts.n, counts.expected), True
    except NotEnoughPairs:
        return DEFAULT, False


def fit(n: Floats, expected: Floats) -> Mixture:
    """The prior of greatest density, where pairs without a report are not known (counts are truncated at 1).
    Raises NotEnoughPairs.
    """
    repeated = int((n >= REPEATED).sum())
    if len(n) < LEAST_PAIRS or repeated < LEAST_REPEATED:
        raise NotEnoughPairs(
            f"{len(n)} pairs, {repeated} of them with {REPEATED} reports, are too few for a prior of EBGM; "
            f"it takes {LEAST_PAIRS} and {LEAST_REPEATED}"
        )
    data = squash(n, expected)
    low, high = np.array(BOUNDS).T
    fits = [
        scipy.optimize.minimize(
            _cost, np.clip(_coordinates(first), low, high), (data,), method="L-BFGS-B", bounds=BOUNDS
        )
        for first in STARTS
    ]
    return _mixture(min(fits, key=lambda found: float(found.fun)).x)


def cost(mixture: Mixture, data: Squashed) -> float:
    """Mean negative log likelihood of the truncated counts, without the term of n!."""
    first, second = mixture.log_marginals(data.n, data.expected)
    seen = np.logaddexp(np.log(mixture.weight) + first, np.log1p(-mixture.weight) + second)
    parts = (
        (mixture.weight, mixture.shape1, mixture.rate1),
        (1 - mixture.weight, mixture.shape2, mixture.rate2),
    )
    positive = sum(w * -np.expm1(-shape * np.log1p(data.expected / rate)) for w, shape, rate in parts)
    return -float(np.average(seen - np.log(positive), weights=data.weight))


def _cost(x: Floats, data: Squashed) -> float:
    """Of a pair, with its part of the density about DEFAULT."""
    far = float(np.sum(((x - _coordinates(DEFAULT)) / SPREAD) ** 2)) / 2
    return cost(_mixture(x), data) + far / float(data.weight.sum())


def _coordinates(m: Mixture) -> Floats:
    shapes = np.log([m.shape1, m.rate1, m.shape2, m.rate2])
    return np.append(shapes, logit(m.weight))


def _mixture(x: Floats) -> Mixture:
    shape1, rate1, shape2, rate2 = (float(v) for v in np.exp(x[:4]))
    return Mixture(shape1, rate1, shape2, rate2, float(expit(x[4])))
