"""EBGM equals published numbers, its fit recovers the prior of the data, and it holds for few reports."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from streams.signals.population import Tables
from streams.signals.statistics import mixture
from streams.signals.statistics.criteria import Flags, evaluate
from streams.signals.statistics.fitting import DEFAULT, NotEnoughPairs, Squashed, cost, fit, prior_of, squash
from streams.signals.statistics.mixture import Mixture
from streams.signals.statistics.ratios import Counts, Floats

#: The prior that openEBGM's vignette fits to the CAERS data.
PUBLISHED = Mixture(3.25379356, 0.39988854, 2.02612692, 1.90807970, 0.06534557)
shapes = st.floats(0.05, 20)
mixtures = st.builds(Mixture, shapes, shapes, shapes, shapes, st.floats(0.01, 0.99))


@pytest.mark.parametrize(
    ("n", "expected", "numbers"),
    [
        (1, 0.0360548, (2.2267, 0.4911, 13.8561)),
        (16, 0.40643623, (23.2611, 15.6857, 33.4773)),
        (19, 0.89690107, (16.7765, 11.6462, 23.5496)),
        (6, 0.07866508, (18.2765, 10.1617, 30.8361)),
        (11, 0.56317044, (14.2771, 8.9813, 21.7819)),
    ],
)
def test_published_shrunk_ratios(n: float, expected: float, numbers: tuple[float, ...]) -> None:
    pair = np.array([float(n)]), np.array([expected])
    found = PUBLISHED.ebgm(*pair)[0], PUBLISHED.quantile(*pair, 0.05)[0], PUBLISHED.quantile(*pair, 0.95)[0]
    assert found == pytest.approx(numbers, abs=0.01)
    if n == 1:
        assert PUBLISHED.posterior_weight(*pair)[0] == pytest.approx(0.2819737, abs=1e-6)


@given(mixtures, st.integers(0, 300), st.floats(1e-3, 1e3), st.sampled_from([0.05, 0.5, 0.95]))
def test_a_quantile_has_its_share_below_it(prior: Mixture, n: int, expected: float, p: float) -> None:
    pair = np.array([float(n)]), np.array([expected])
    found, q = prior.quantile(*pair, p)[0], prior.posterior_weight(*pair)[0]
    first = scipy.stats.gamma.cdf(found, prior.shape1 + n, scale=1 / (prior.rate1 + expected))
    second = scipy.stats.gamma.cdf(found, prior.shape2 + n, scale=1 / (prior.rate2 + expected))
    assert q * first + (1 - q) * second == pytest.approx(p, abs=1e-7)


@given(mixtures, st.integers(0, 12))
def test_interpolated_quantiles_equal_solved_ones(prior: Mixture, n: int) -> None:
    rng = np.random.default_rng(n)
    expected = np.exp(rng.uniform(-7, 5, mixture.INTERPOLATED_FROM))
    counts = np.full(len(expected), float(n))
    few = slice(0, 50)
    for p in (0.05, 0.95):
        solved = prior.quantile(counts[few], expected[few], p)
        np.testing.assert_allclose(prior.quantile(counts, expected, p)[few], solved, rtol=2e-6)


def test_the_shrunk_ratio_is_between_the_observed_one_and_the_prior() -> None:
    prior = Mixture(2.0, 2.0, 2.0, 2.0, 0.5)
    n, expected = np.array([50.0, 1.0, 0.0]), np.array([5.0, 0.01, 4.0])
    ebgm = prior.ebgm(n, expected)
    assert (ebgm[:2] < (n / expected)[:2]).all() and ebgm[0] > 5 and ebgm[1] < 2 and 0 < ebgm[2] < 1


def drawn(prior: Mixture, pairs: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Counts of at least one report, with expectations over several orders of magnitude."""
    rng = np.random.default_rng(seed)
    expected = np.exp(rng.normal(-0.5, 1.6, pairs))
    first = rng.random(pairs) < prior.weight
    shape, rate = np.where(first, prior.shape1, prior.shape2), np.where(first, prior.rate1, prior.rate2)
    n = rng.poisson(rng.gamma(shape, 1 / rate) * expected).astype(float)
    return n[n > 0], expected[n > 0]


def test_the_fit_recovers_the_prior_of_truncated_counts() -> None:
    n, expected = drawn(PUBLISHED, 200_000, 1)
    found = fit(n, expected)
    if found.shape1 / found.rate1 < found.shape2 / found.rate2:
        found = Mixture(found.shape2, found.rate2, found.shape1, found.rate1, 1 - found.weight)
    assert found.weight == pytest.approx(PUBLISHED.weight, rel=0.1)
    assert found.shape1 / found.rate1 == pytest.approx(PUBLISHED.shape1 / PUBLISHED.rate1, rel=0.1)
    assert found.shape2 / found.rate2 == pytest.approx(PUBLISHED.shape2 / PUBLISHED.rate2, rel=0.1)
    ours, theirs = found.ebgm(n, expected), PUBLISHED.ebgm(n, expected)
    assert np.median(np.abs(ours / theirs - 1)) < 0.02


def test_a_fit_is_no_worse_than_the_prior_that_made_the_data() -> None:
    n, expected = drawn(PUBLISHED, 20_000, 2)
    data = squash(n, expected)
    found = fit(n, expected)
    assert cost(found, data) <= cost(PUBLISHED, data) < cost(DEFAULT, data)


def test_squashing_keeps_the_number_of_pairs_and_hardly_changes_the_likelihood() -> None:
    n, expected = drawn(PUBLISHED, 50_000, 3)
    data = squash(n, expected)
    assert len(data.n) < len(n) / 4
    for count in (1.0, 2.0, 7.0):
        assert data.weight[data.n == count].sum() == (n == count).sum()
    whole = Squashed(n, expected, np.ones(len(n)))
    assert cost(PUBLISHED, data) == pytest.approx(cost(PUBLISHED, whole), rel=1e-4)


def test_five_parameters_are_not_fitted_to_a_handful_of_pairs() -> None:
    with pytest.raises(NotEnoughPairs, match="10 pairs"):
        fit(np.ones(10), np.ones(10))


DRUGS, TERMS = 120, 300
SEEDS = range(4)
#: True ratios of three pairs of which 0.1 to 2 reports were expected.
EFFECTS = (5.0, 10.0, 30.0)
LISTED = 3


@dataclass(frozen=True)
class Drawn:
    """The pairs of a simulated table that have a report."""

    tables: Tables
    ratio: Floats
    """True reporting ratio."""
    has_effect: Flags


def small_table(reports: int, seed: int, effects: tuple[float, ...]) -> Drawn:
    """A table of reports with one pair each; drugs and terms are independent except for the effects."""
    rng = np.random.default_rng(seed)
    drugs, terms = (rng.permutation(1 / np.arange(2, size + 2)) for size in (DRUGS, TERMS))
    share = np.outer(drugs / drugs.sum(), terms / terms.sum())
    candidates = np.argwhere((share * reports > 0.1) & (share * reports < 2))
    planted = rng.permutation(candidates)[: len(effects)]
    is_planted = np.zeros(share.shape, bool)
    for (drug, term), ratio in zip(planted, effects, strict=True):
        share[drug, term] *= ratio
        is_planted[drug, term] = True
    share /= share.sum()
    counted = rng.multinomial(reports, share.ravel()).reshape(share.shape).astype(np.float64)
    rows = np.nonzero(counted)
    counts = Counts(
        counted[rows], counted.sum(1)[rows[0]], counted.sum(0)[rows[1]], np.full(len(rows[0]), float(reports))
    )
    true = (share / np.outer(share.sum(1), share.sum(0)))[rows]
    pairs = [(f"d{drug}", f"t{term}") for drug, term in zip(*rows, strict=True)]
    return Drawn(Tables(pairs, counts, reports), true, is_planted[rows])


def parameters(prior: Mixture) -> tuple[float, ...]:
    return prior.shape1, prior.rate1, prior.shape2, prior.rate2


@pytest.mark.parametrize("effects", [(), EFFECTS], ids=["no effect", "three effects"])
@pytest.mark.parametrize("reports", [300, 916, 1600, 3000])
def test_eb05_is_below_the_true_ratio_of_19_in_20_pairs(reports: int, effects: tuple[float, ...]) -> None:
    """Few reports get the published prior and wide intervals, and in 3000 an effect is found."""
    covered: list[bool] = []
    lows: list[float] = []
    for seed in SEEDS:
        table = small_table(reports, seed, effects)
        prior, is_fitted = prior_of(table.tables.counts)
        found = evaluate(table.tables.counts, prior)
        below, listed = found.ebgm.low <= table.ratio, found.counts.n == LISTED
        assert below.mean() >= 0.95 and below[table.has_effect].all()
        covered += below[found.counts.n >= LISTED].tolist()
        assert max(parameters(prior)) < 50
        assert is_fitted is (reports == 3000) or reports == 1600
        if reports == 916:
            assert (found.ebgm.high[listed] > 2 * found.ebgm.low[listed]).all()
            assert (found.ebgm.value < 134).all()
        if is_fitted:
            assert min(parameters(prior)) > 0.01 and 0.005 < prior.weight < 0.995
            lows += found.ebgm.low[table.has_effect & (table.ratio > 10)].tolist()
            assert (found.ebgm.low >= 2)[~table.has_effect].sum() <= 1
    # Of the pairs that are listed alone, which are those with the most reports by chance.
    assert np.mean(covered) >= 0.94
    assert not effects or reports < 3000 or np.median(lows) >= 2


def test_more_pairs_alone_are_not_enough_for_a_fit() -> None:
    pairs = 5000
    counts = Counts(np.ones(pairs), np.full(pairs, 50.0), np.full(pairs, 20.0), np.full(pairs, 1000.0))
    assert prior_of(counts) == (DEFAULT, False)
