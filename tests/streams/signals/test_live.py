"""Statistics that follow changes equal those that are computed from all counts."""

from __future__ import annotations

import numpy as np

from streams.signals.live import LiveStatistics
from streams.signals.population import Tables
from streams.signals.statistics.criteria import evaluate
from streams.signals.statistics.mixture import Mixture
from streams.signals.statistics.tables import Counts, Floats


def tables(pairs: int, seed: int) -> Tables:
    rng = np.random.default_rng(seed)
    n: Floats = rng.poisson(2, pairs).astype(np.float64) + 1
    drug, term = (n + rng.integers(5, 500, pairs).astype(np.float64) for _ in range(2))
    counts = Counts(n, drug, term, np.full(pairs, 1e5))
    return Tables([(f"d{i}", f"t{i % 7}") for i in range(pairs)], counts, 100_000)


def test_a_change_computes_its_pairs_and_no_others() -> None:
    first = tables(2500, 1)
    live = LiveStatistics(first)
    assert live.is_fitted
    before = live.statistics().ebgm.value.copy()
    changed, new = first.pairs[5], ("new", "t1")
    counts = Counts(np.array([9.0, 3.0]), np.full(2, 50.0), np.full(2, 40.0), np.full(2, 1e5))
    live.change([changed, new], counts)
    found = live.statistics()
    expected = evaluate(counts, live.prior)
    np.testing.assert_allclose(found.ebgm.value[[5, 2500]], expected.ebgm.value)
    np.testing.assert_allclose(found.ror.low[[5, 2500]], expected.ror.low)
    np.testing.assert_array_equal(np.delete(found.ebgm.value, [5, 2500]), np.delete(before, 5))


def test_a_refit_equals_a_computation_from_scratch() -> None:
    first, second = tables(2500, 1), tables(3000, 2)
    live = LiveStatistics(first)
    changed = live.adopt(second)
    # Pairs without a new number of reports keep their statistics until the next fit.
    assert 500 <= len(changed) < 3000
    live.refit()
    scratch = LiveStatistics(second)
    assert live.is_fitted and scratch.is_fitted
    rows = [live.pairs.index(pair) for pair in scratch.pairs]
    np.testing.assert_allclose(live.statistics().ebgm.low[rows], scratch.statistics().ebgm.low, rtol=2e-2)
    np.testing.assert_allclose(live.statistics().ic.low[rows], scratch.statistics().ic.low)


def counted(reports: Floats) -> Tables:
    """All pairs of a table of drugs and terms that have a report."""
    drugs, terms = np.nonzero(reports)
    n, total = reports[drugs, terms], reports.sum()
    counts = Counts(n, reports.sum(1)[drugs], reports.sum(0)[terms], np.full(len(n), total))
    return Tables([(f"d{d}", f"t{t}") for d, t in zip(drugs, terms, strict=True)], counts, int(total))


def test_a_fit_to_few_pairs_does_not_decide_those_of_the_many_that_come_later() -> None:
    rng = np.random.default_rng(2)
    shares = np.outer(rng.dirichlet(np.full(60, 0.4)), rng.dirichlet(np.full(80, 0.4)))
    shares.flat[rng.integers(0, shares.size, 20)] *= rng.uniform(3, 30, 20)

    def more(reports: int) -> Floats:
        drawn = rng.multinomial(reports, shares.ravel() / shares.sum())
        return drawn.reshape(shares.shape).astype(np.float64)

    reports = more(600)
    live = LiveStatistics(counted(reports))
    assert not live.is_fitted
    for hour in range(8):
        reports += more(150 * 2**hour)
        live.adopt(counted(reports))
        live.refit()
    assert live.is_fitted
    scratch = LiveStatistics(counted(reports)).statistics()
    found = live.statistics(counted(reports).pairs)
    assert (scratch.ebgm.low >= 2).sum() > 5
    np.testing.assert_allclose(found.ebgm.low, scratch.ebgm.low, rtol=2e-2)


def test_a_pair_that_is_gone_has_no_reports() -> None:
    first = tables(100, 3)
    live = LiveStatistics(first)
    keep = np.arange(1, 100)
    gone = live.adopt(Tables(first.pairs[1:], first.counts.take(keep), first.reports))
    assert gone == [first.pairs[0]]
    assert live.statistics(gone).counts.n.tolist() == [0]
    assert live.adopt(Tables(first.pairs[1:], first.counts.take(keep), first.reports)) == []


def test_thousands_of_pairs_may_be_gone_under_a_prior_that_is_nearly_a_point_and_zero() -> None:
    rng = np.random.default_rng(5)
    n: Floats = rng.poisson(5, 3000).astype(np.float64) + 1
    first = Tables([(f"d{i}", "t") for i in range(3000)], Counts(n, n * 100, n * 10, n * 1000), 100_000)
    live = LiveStatistics(first)
    live.prior = Mixture(0.0003, 15.0, 7000.0, 8000.0, 0.01)
    few = Tables(first.pairs[:100], first.counts.take(np.arange(100)), first.reports)
    assert len(live.adopt(few)) == 2900
    live.refit()
    assert np.isfinite(live.statistics(few.pairs).ebgm.low).all()
