"""Ratios and the information component equal published numbers, and have the properties that define them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from streams.signals.statistics.information_component import information_component
from streams.signals.statistics.ratios import chi_square, mid_p, prr, ror
from streams.signals.statistics.tables import Counts, counts_of

#: The 17 reports of openEBGM's vignette: drug and event of each.
REPORTS = [
    "B1", "A1", "B2", "A1", "A1", "A1", "A2", "A2", "A1", "A2", "A2", "B2", "B1", "B2", "B1", "B2", "C1",
]  # fmt: skip
cells = st.tuples(*[st.integers(0, 10_000)] * 4).filter(lambda t: t[0] + t[1] > 0 and t[2] + t[3] > 0)


def published() -> tuple[list[str], Counts]:
    pairs, drugs, terms = Counter(REPORTS), Counter(r[0] for r in REPORTS), Counter(r[1] for r in REPORTS)
    columns = ([pairs[p], drugs[p[0]], terms[p[1]], len(REPORTS)] for p in sorted(pairs))
    return sorted(pairs), Counts(*np.array(list(columns), float).T)


def test_the_toy_table_of_openebgm() -> None:
    names, counts = published()
    assert names == ["A1", "A2", "B1", "B2", "C1"]
    np.testing.assert_array_equal(counts.n, [5, 4, 3, 4, 1])
    np.testing.assert_allclose(
        counts.expected, [4.7647059, 4.2352941, 3.7058824, 3.2941176, 0.5294118], atol=5e-8
    )
    np.testing.assert_allclose(counts.n / counts.expected, [1.05, 0.94, 0.81, 1.21, 1.89], atol=0.005)
    np.testing.assert_allclose(prr(counts).value, [1.11, 0.89, 0.71, 1.43, 2.00], atol=0.005)


def test_a_published_two_by_two_table() -> None:
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
def test_the_limits_of_the_information_component_are_quantiles_of_its_posterior(
    pairs: list[tuple[int, float]],
) -> None:
    n, expected = np.array(pairs, float).T
    ic = information_component(n, expected)
    law = scipy.stats.gamma(n + 0.5, scale=1 / (expected + 0.5))
    # 2**low may be too small for a float: the quantile of shape 1/2 is not.
    np.testing.assert_allclose(law.cdf(np.exp2(ic.low)), 0.025, rtol=1e-6)
    np.testing.assert_allclose(law.cdf(np.exp2(ic.high)), 0.975, rtol=1e-6)
    assert (ic.low < ic.value).all() and (ic.value < ic.high).all()


@given(st.lists(cells, min_size=1, max_size=20))
def test_ratios_are_finite_positive_and_inside_their_intervals(
    tables: list[tuple[int, int, int, int]],
) -> None:
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
