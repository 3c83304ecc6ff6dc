"""EBGM on tables of few reports, with and without pairs that have an excess of a known size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from streams.signals.live import LiveStatistics
from streams.signals.population import Tables
from streams.signals.statistics.criteria import Flags, Statistics
from streams.signals.statistics.fitting import DEFAULT, fit
from streams.signals.statistics.mixture import Mixture
from streams.signals.statistics.tables import Counts, Floats

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


def drawn(reports: int, seed: int, effects: tuple[float, ...]) -> Drawn:
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


def statistics(table: Drawn) -> tuple[LiveStatistics, Statistics]:
    live = LiveStatistics(table.tables)
    return live, live.statistics(table.tables.pairs)


def parameters(prior: Mixture) -> tuple[float, ...]:
    return prior.shape1, prior.rate1, prior.shape2, prior.rate2


@pytest.mark.parametrize("effects", [(), EFFECTS], ids=["no effect", "three effects"])
@pytest.mark.parametrize("reports", [300, 916, 1600, 3000])
def test_eb05_is_below_the_true_ratio_of_nineteen_pairs_in_twenty(
    reports: int, effects: tuple[float, ...]
) -> None:
    covered: list[bool] = []
    for seed in SEEDS:
        table = drawn(reports, seed, effects)
        live, found = statistics(table)
        below = found.ebgm.low <= table.ratio
        assert below.mean() >= 0.95 and below[table.has_effect].all()
        covered += below[found.counts.n >= LISTED].tolist()
        assert max(parameters(live.prior)) < 50
    # Of the pairs that are listed alone, which are those with the most reports by chance.
    assert np.mean(covered) >= 0.94


@pytest.mark.parametrize("effects", [(), EFFECTS], ids=["no effect", "three effects"])
def test_pairs_of_few_reports_have_wide_intervals_and_no_common_value(effects: tuple[float, ...]) -> None:
    for seed in SEEDS:
        _, found = statistics(drawn(916, seed, effects))
        listed = found.counts.n == LISTED
        assert (found.ebgm.high[listed] > 2 * found.ebgm.low[listed]).all()
        assert (found.ebgm.value < 134).all()


@pytest.mark.parametrize("effects", [(), EFFECTS], ids=["no effect", "three effects"])
def test_a_fit_to_the_smallest_table_that_has_enough_pairs_ends_inside_of_its_bounds(
    effects: tuple[float, ...],
) -> None:
    for seed in SEEDS:
        table = drawn(3000, seed, effects)
        found = fit(table.tables.counts.n, table.tables.counts.expected)
        assert found != DEFAULT
        assert min(parameters(found)) > 0.01 and max(parameters(found)) < 50
        assert 0.005 < found.weight < 0.995


def test_an_effect_is_found_in_a_table_of_three_thousand_reports() -> None:
    lows = []
    for seed in SEEDS:
        table = drawn(3000, seed, EFFECTS)
        live, found = statistics(table)
        assert live.is_fitted
        lows += found.ebgm.low[table.has_effect & (table.ratio > EFFECTS[1])].tolist()
        assert (found.ebgm.low >= 2)[~table.has_effect].sum() <= 1
    assert np.median(lows) >= 2


def test_a_table_of_few_reports_gets_the_published_prior() -> None:
    live, _ = statistics(drawn(916, 1, ()))
    assert not live.is_fitted and live.prior == DEFAULT


def test_more_pairs_alone_are_not_enough_for_a_fit() -> None:
    pairs = 5000
    counts = Counts(np.ones(pairs), np.full(pairs, 50.0), np.full(pairs, 20.0), np.full(pairs, 1000.0))
    live = LiveStatistics(Tables([(f"d{i}", f"t{i}") for i in range(pairs)], counts, 1000))
    assert not live.is_fitted and live.prior == DEFAULT
