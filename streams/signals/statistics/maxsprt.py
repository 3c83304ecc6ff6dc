"""The maximized sequential probability ratio test for Poisson counts (Kulldorff et al. 2011).

It may be evaluated any number of times until `limit` reports were expected: the probability of ever
signalling without an excess is then alpha. Critical values are computed here, by following the distribution
of the count between the times at which one more report would no longer signal.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import scipy
from scipy.special import gammaln, lambertw

from streams.signals.statistics.ratios import Floats

ALPHA = 0.05
#: No critical value for alpha above 1e-7 is outside.
LOWEST, HIGHEST = 0.01, 40.0


def log_likelihood_ratio(n: Floats, expected: Floats) -> Floats:
    """n ln(n / mu) - (n - mu), or 0 where n is not above mu."""
    n, expected = np.asarray(n, float), np.asarray(expected, float)
    above = n > expected
    ratio = np.divide(n, expected, out=np.ones_like(n), where=above)
    return np.where(above, n * np.log(ratio) - n + expected, 0.0)


@lru_cache(maxsize=64)
def critical_value(limit: float, alpha: float = ALPHA, least: int = 1) -> float:
    """The value at which the log likelihood ratio signals, for at most `limit` expected reports and at least
    `least` observed ones.
    """

    def excess(value: float) -> float:
        return signal_probability(value, limit, 1.0, least) - alpha

    return float(scipy.optimize.brentq(excess, LOWEST, HIGHEST, xtol=1e-10))


def signal_probability(value: float, limit: float, relative_risk: float = 1.0, least: int = 1) -> float:
    """Probability that the test with this critical value signals before `limit` where reports come
    `relative_risk` times as often as expected: its power.

    The n-th report signals if it comes while at most mu_n are expected, where n reports and mu_n give the
    critical value. Between mu_(n-1) and mu_n the test goes on as long as there are fewer than n reports.
    """
    alive, now, n = np.ones(1), 0.0, least
    while now < limit:
        end = min(_latest(n, value), limit)
        mean = (end - now) * relative_risk
        # More than these have no probability that a double could add.
        most = min(n, int(mean + 12 * np.sqrt(mean) + 40))
        counts = np.arange(most)
        step = np.exp(counts * np.log(mean) - mean - gammaln(counts + 1))
        alive = np.convolve(alive, step)[:n]
        now, n = end, n + 1
    return 1.0 - float(alive.sum())


def _latest(n: int, value: float) -> float:
    """mu_n: the largest expectation at which n reports signal; the solution below n of
    n ln(n / mu) - n + mu = value, which is -n W(-exp(-1 - value / n)).
    """
    return float(-n * lambertw(-np.exp(-1.0 - value / n)).real)
