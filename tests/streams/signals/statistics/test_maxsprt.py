"""Critical values and power of the sequential test equal published ones, and hold in a simulation."""

from __future__ import annotations

import numpy as np
import pytest

from streams.signals.statistics.maxsprt import critical_value, log_likelihood_ratio, power, signal_probability


@pytest.mark.parametrize(("limit", "value"), [(1, 2.853937), (10, 3.467952), (100, 3.952321)])
def test_published_critical_values(limit: float, value: float) -> None:
    assert critical_value(limit) == pytest.approx(value, abs=1e-6)


def test_published_power() -> None:
    assert power(10, 2.0) == pytest.approx(0.6850634, abs=1e-7)


@pytest.mark.parametrize(("least", "risk"), [(1, 1.0), (3, 1.0), (3, 2.5)])
def test_simulated_counts_signal_as_often_as_computed(least: int, risk: float) -> None:
    rng = np.random.default_rng(4)
    limit, value = 5.0, critical_value(5.0, least=least)
    arrivals = np.cumsum(rng.exponential(1 / risk, (20_000, 60)), axis=1)
    number = np.arange(1, 61)
    ratio = log_likelihood_ratio(np.broadcast_to(number, arrivals.shape), arrivals)
    signalled = ((ratio >= value) & (arrivals <= limit) & (number >= least)).any(axis=1).mean()
    assert signalled == pytest.approx(signal_probability(value, limit, risk, least), abs=0.01)


def test_more_reports_before_a_signal_need_a_lower_value() -> None:
    values = [critical_value(10, least=least) for least in (1, 3, 6)]
    assert values == sorted(values, reverse=True)


def test_no_excess_has_no_ratio() -> None:
    ratio = log_likelihood_ratio(np.array([0.0, 3.0, 5.0]), np.array([2.0, 3.0, 2.0]))
    assert ratio[:2].tolist() == [0, 0] and ratio[2] == pytest.approx(5 * np.log(2.5) - 3)
