"""The gamma-Poisson shrinker (DuMouchel 1999): a prior of two gamma distributions, and its posterior."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import digamma, expit, gammainc, gammaincinv, gammaln, logit

from streams.signals.statistics.ratios import Floats

#: Pairs of one count from which their quantiles are interpolated, and the step between two nodes in log E.
INTERPOLATED_FROM = 2000
STEP = 0.02
#: Steps from the spline that are larger are not trusted.
NEAR = 1e-5
ITERATIONS = 60
PRECISION = 1e-10


@dataclass(frozen=True, slots=True)
class Mixture:
    """The prior of the reporting ratio: with probability `weight` gamma with shape `shape1` and rate `rate1`,
    else with shape `shape2` and rate `rate2`.
    """

    shape1: float
    rate1: float
    shape2: float
    rate2: float
    weight: float

    def log_marginals(self, n: Floats, expected: Floats) -> tuple[Floats, Floats]:
        """Logarithms of the negative binomial probabilities of the counts under either component, without the
        factor 1 / n! that both have.
        """
        distinct, place = np.unique(n, return_inverse=True)
        both = []
        for shape, rate in ((self.shape1, self.rate1), (self.shape2, self.rate2)):
            counted = gammaln(shape + distinct) - gammaln(shape) + shape * np.log(rate)
            both.append(counted[place] - (shape + n) * np.log(rate + expected) + n * np.log(expected))
        return both[0], both[1]

    def posterior_weight(self, n: Floats, expected: Floats) -> Floats:
        """Probability of the first component given the count."""
        first, second = self.log_marginals(n, expected)
        weight: Floats = expit(logit(self.weight) + first - second)
        return weight

    def ebgm(self, n: Floats, expected: Floats) -> Floats:
        """Empirical Bayes geometric mean: the exponential of the posterior mean of the log ratio."""
        q = self.posterior_weight(n, expected)
        distinct, place = np.unique(n, return_inverse=True)
        first = digamma(self.shape1 + distinct)[place] - np.log(self.rate1 + expected)
        second = digamma(self.shape2 + distinct)[place] - np.log(self.rate2 + expected)
        mean: Floats = np.exp(q * first + (1 - q) * second)
        return mean

    def quantile(self, n: Floats, expected: Floats, p: float) -> Floats:
        """Posterior quantile of the ratio: EB05 with p 0.05, EB95 with 0.95.

        Of a count that many pairs have, a cubic spline in log E and one step of Newton's method give the
        quantiles; their relative error is below 1e-6.
        """
        found = np.empty(len(n))
        exact = np.ones(len(n), bool)
        distinct, place, times = np.unique(n, return_inverse=True, return_counts=True)
        for i in np.flatnonzero(times >= INTERPOLATED_FROM):
            rows = np.flatnonzero(place == i)
            found[rows] = self._interpolated(distinct[i], expected[rows], p)
            exact[rows] = False
        rows = np.flatnonzero(exact)
        found[rows] = self._solved(n[rows], expected[rows], p)
        return np.exp(found)

    def _interpolated(self, n: float, expected: Floats, p: float) -> Floats:
        log_expected = np.log(expected)
        low, high = log_expected.min(), log_expected.max()
        nodes = np.linspace(low, high + STEP, 8 + int((high - low) / STEP))
        curve = scipy.interpolate.CubicSpline(nodes, self._solved(np.full(len(nodes), n), np.exp(nodes), p))
        x: Floats = curve(log_expected)
        counts = np.full(len(expected), n)
        below, density = self._posterior(counts, expected).below(x)
        with np.errstate(over="ignore"):
            step = np.divide(below - p, density, out=np.ones_like(x), where=density > 0)
        x -= step
        # Between two components that are far apart the curve is steep and the spline not good enough.
        far = np.flatnonzero(np.abs(step) > NEAR)
        x[far] = self._solved(counts[far], expected[far], p)
        return x

    def _solved(self, n: Floats, expected: Floats, p: float) -> Floats:
        """Logarithms of quantiles by Newton's method, kept between the quantiles of the two components."""
        posterior = self._posterior(n, expected)
        ends = posterior.logarithms(p)
        low, high = ends.min(axis=0), ends.max(axis=0)
        q = posterior.weights[0]
        x: Floats = q * ends[0] + (1 - q) * ends[1]
        for _ in range(ITERATIONS):
            below, density = posterior.below(x)
            excess = below - p
            low, high = np.where(excess < 0, x, low), np.where(excess < 0, high, x)
            with np.errstate(divide="ignore", invalid="ignore"):
                step = x - excess / density
            inside = np.isfinite(step) & (step >= low) & (step <= high)
            following = np.where(inside, step, (low + high) / 2)
            moved = np.abs(following - x).max(initial=0.0)
            x = following
            if moved < PRECISION:
                break
        return x

    def _posterior(self, n: Floats, expected: Floats) -> _Posterior:
        q = self.posterior_weight(n, expected)
        shapes = (self.shape1 + n, self.shape2 + n)
        return _Posterior(shapes, (self.rate1 + expected, self.rate2 + expected), (q, 1 - q))


@dataclass(frozen=True, slots=True)
class _Posterior:
    """Two gamma distributions for each pair, with their weights."""

    shapes: tuple[Floats, Floats]
    rates: tuple[Floats, Floats]
    weights: tuple[Floats, Floats]

    def logarithms(self, p: float) -> Floats:
        """The logarithms of the quantiles of either component."""
        ends = [
            np.log(gammaincinv(shape, p) / rate) for shape, rate in zip(self.shapes, self.rates, strict=True)
        ]
        return np.array(ends)

    def below(self, x: Floats) -> tuple[Floats, Floats]:
        """Probability of a log ratio below x, and its density there."""
        share, density = np.zeros_like(x), np.zeros_like(x)
        for shape, rate, weight in zip(self.shapes, self.rates, self.weights, strict=True):
            scaled = rate * np.exp(x)
            share += weight * gammainc(shape, scaled)
            density += weight * np.exp(shape * np.log(scaled) - scaled - gammaln(shape))
        return share, density


def rows_by_count(n: Floats) -> list[NDArray[np.intp]]:
    """The positions of the pairs of each distinct count, by rising count."""
    order = np.argsort(n, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(n[order])) + 1)
