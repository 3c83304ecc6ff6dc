"""Ratios, the information component, criteria and the sequential test equal published numbers."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from streams.signals.statistics.criteria import CRITERIA, benjamini_hochberg, discoveries, evaluate
from streams.signals.statistics.maxsprt import critical_value, log_likelihood_ratio, signal_probability
from streams.signals.statistics.mixture import Mixture
from streams.signals.statistics.ratios import (
    Counts,
    chi_square,
    counts_of,
    information_component,
    mid_p,
    prr,
    ror,
)

#: The 17 reports of openEBGM's vignette: drug and event of each.
REPORTS = [
    "B1", "A1", "B2", "A1", "A1", "A1", "A2", "A2", "A1", "A2", "A2", "B2", "B1", "B2", "B1", "B2", "C1",
]  # fmt: skip
cells = st.tuples(*[st.integers(0, 10_000)] * 4).filter(lambda t: t[0] + t[1] > 0 and t[2] + t[3] > 0)


def published() -> tuple[list[str], Counts]:
    pairs, drugs, terms = Counter(REPORTS), Counter(r[0] for r in REPORTS), Counter(r[1] for r in REPORTS)
    columns = ([pairs[p], drugs[p[0]], terms[p[1]], len(REPORTS)] for p in sorted(pairs))
    return sorted(pairs), Counts(*np.array(list(columns), float).T)


def test_the_toy_table_of_openebgm_and_a_published_two_by_two_table() -> None:
    names, counts = published()
    assert names == ["A1", "A2", "B1", "B2", "C1"]
    np.testing.assert_array_equal(counts.n, [5, 4, 3, 4, 1])
    np.testing.assert_allclose(
        counts.expected, [4.7647059, 4.2352941, 3.7058824, 3.2941176, 0.5294118], atol=5e-8
    )
    np.testing.assert_allclose(counts.n / counts.expected, [1.05, 0.94, 0.81, 1.21, 1.89], atol=0.005)
    np.testing.assert_allclose(prr(counts).value, [1.11, 0.89, 0.71, 1.43, 2.00], atol=0.005)
    counts = counts_of([(28, 942, 17, 31435)])
    assert np.ravel([getattr(prr(counts), name) for name in ("value", "low", "high")]) == pytest.approx(
        [53.405458, 29.332013, 97.236523], abs=2e-6
    )
    assert np.ravel([getattr(ror(counts), name) for name in ("value", "low", "high")]) == pytest.approx(
        [54.963157, 29.980827, 100.762688], abs=2e-6
    )
    assert chi_square(counts) == pytest.approx(544.7096, abs=5e-5)
    assert chi_square(counts, yates=True) == pytest.approx(524.4647, abs=5e-5)


@pytest.mark.parametrize(
    ("observed", "expected", "numbers"),
    [
        (12, 5, (1.184425, 0.254233, 1.885627)),
        (0, 1, (-1.584963, -11.57685, 0.743841)),
        (25, 0.1710908, (5.247845, 4.626870, 5.757635)),
    ],
)
def test_published_information_components(
    observed: float, expected: float, numbers: tuple[float, float, float]
) -> None:
    ic = information_component(np.array([float(observed)]), np.array([expected]))
    assert [ic.value[0], ic.low[0], ic.high[0]] == pytest.approx(numbers, abs=6e-6)


@given(st.lists(st.tuples(st.integers(0, 500), st.floats(1e-4, 1e3)), min_size=1, max_size=20))
def test_limits_of_the_information_component_are_its_quantiles(pairs: list[tuple[int, float]]) -> None:
    n, expected = np.array(pairs, float).T
    ic = information_component(n, expected)
    law = scipy.stats.gamma(n + 0.5, scale=1 / (expected + 0.5))
    # 2**low may be too small for a float: the quantile of shape 1/2 is not.
    np.testing.assert_allclose(law.cdf(np.exp2(ic.low)), 0.025, rtol=1e-6)
    np.testing.assert_allclose(law.cdf(np.exp2(ic.high)), 0.975, rtol=1e-6)
    assert (ic.low < ic.value).all() and (ic.value < ic.high).all()


@given(st.lists(cells, min_size=1, max_size=20))
def test_ratios_are_finite_positive_inside_their_intervals(tables: list[tuple[int, int, int, int]]) -> None:
    counts = counts_of(tables)
    for ratio in (prr(counts), ror(counts)):
        assert np.isfinite([ratio.value, ratio.low, ratio.high]).all()
        assert (
            (ratio.low > 0).all() and (ratio.low <= ratio.value).all() and (ratio.value <= ratio.high).all()
        )


@given(st.tuples(*[st.integers(1, 500)] * 4))
def test_chi_square_and_fisher_agree_with_those_of_scipy(table: tuple[int, int, int, int]) -> None:
    stats, counts, square = scipy.stats, counts_of([table]), np.reshape(table, (2, 2))
    assert chi_square(counts)[0] == pytest.approx(
        stats.chi2_contingency(square, correction=False)[0], abs=1e-8
    )
    a, b, c, d = table
    if abs(a * d - b * c) > sum(table) / 2:  # scipy corrects by less where this would change the sign
        assert chi_square(counts, yates=True)[0] == pytest.approx(stats.chi2_contingency(square)[0], abs=1e-8)
    tail = stats.fisher_exact(square, "greater")[1]
    beyond = stats.fisher_exact([[a + 1, b - 1], [c - 1, d + 1]], "greater")[1]
    assert mid_p(counts)[0] == pytest.approx((tail + beyond) / 2, rel=1e-6, abs=1e-12)


@given(st.tuples(*[st.integers(1, 10_000)] * 4))
def test_the_odds_ratio_of_the_complement_is_its_inverse(table: tuple[int, int, int, int]) -> None:
    a, b, c, d = table
    one, other = ror(counts_of([(a, b, c, d)])), ror(counts_of([(b, a, d, c)]))
    assert one.value[0] == pytest.approx(1 / other.value[0])
    assert one.low[0] == pytest.approx(1 / other.high[0])


PRIOR = Mixture(3.25379356, 0.39988854, 2.02612692, 1.90807970, 0.06534557)


def test_criteria_of_a_strong_a_doubtful_and_an_absent_disproportionality() -> None:
    found = evaluate(counts_of([(28, 942, 17, 31435), (3, 40, 400, 30_000), (30, 970, 900, 29_100)]), PRIOR)
    flags = {name: criterion(found).tolist() for name, criterion in CRITERIA.items()}
    # Three reports are enough for ratios, and too few for the posteriors that shrink them.
    assert flags["evans"] == flags["ror025"] == [True, True, False]
    assert flags["ic025"] == flags["eb05"] == [True, False, False]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=50), st.sampled_from([0.01, 0.05, 0.2]))
def test_false_discoveries_are_controlled_as_by_scipy(p: list[float], rate: float) -> None:
    adjusted = scipy.stats.false_discovery_control(p)
    near = np.isclose(adjusted, rate, rtol=1e-9)
    rejected = benjamini_hochberg(np.array(p), rate)
    assert ((rejected == (adjusted <= rate)) | near).all()


def test_of_independent_pairs_hardly_any_and_of_none_nothing_is_a_discovery() -> None:
    rng = np.random.default_rng(5)
    tables = [(rng.poisson(5), 995, 495, 98_505) for _ in range(400)]
    assert discoveries(counts_of(tables), 0.05).sum() <= 2
    planted = discoveries(counts_of([*tables, (60, 940, 440, 98_560)]), 0.05)
    assert planted[-1]
    assert benjamini_hochberg(np.empty(0), 0.05).tolist() == pytest.approx([])


@pytest.mark.parametrize(("limit", "value"), [(1, 2.853937), (10, 3.467952), (100, 3.952321)])
def test_published_critical_values(limit: float, value: float) -> None:
    assert critical_value(limit) == pytest.approx(value, abs=1e-6)


def test_published_power_lower_values_for_later_signals_and_no_ratio_without_an_excess() -> None:
    assert signal_probability(critical_value(10), 10, 2.0) == pytest.approx(0.6850634, abs=1e-7)
    values = [critical_value(10, least=least) for least in (1, 3, 6)]
    assert values == sorted(values, reverse=True)
    ratio = log_likelihood_ratio(np.array([0.0, 3.0, 5.0]), np.array([2.0, 3.0, 2.0]))
    assert ratio[:2].tolist() == [0, 0] and ratio[2] == pytest.approx(5 * np.log(2.5) - 3)


@pytest.mark.parametrize(("least", "risk"), [(1, 1.0), (3, 1.0), (3, 2.5)])
def test_simulated_counts_signal_as_often_as_computed(least: int, risk: float) -> None:
    rng = np.random.default_rng(4)
    limit, value = 5.0, critical_value(5.0, least=least)
    arrivals = np.cumsum(rng.exponential(1 / risk, (20_000, 60)), axis=1)
    number = np.arange(1, 61)
    ratio = log_likelihood_ratio(np.broadcast_to(number, arrivals.shape), arrivals)
    signalled = ((ratio >= value) & (arrivals <= limit) & (number >= least)).any(axis=1).mean()
    assert signalled == pytest.approx(signal_probability(value, limit, risk, least), abs=0.01)
