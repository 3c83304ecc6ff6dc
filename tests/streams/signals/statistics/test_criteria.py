"""Criteria at their limits, and the control of false discoveries."""

from __future__ import annotations

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from streams.signals.statistics.criteria import CRITERIA, benjamini_hochberg, discoveries, evaluate
from streams.signals.statistics.mixture import Mixture
from streams.signals.statistics.tables import counts_of

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


def test_of_independent_pairs_hardly_any_is_a_discovery() -> None:
    rng = np.random.default_rng(5)
    tables = [(rng.poisson(5), 995, 495, 98_505) for _ in range(400)]
    assert discoveries(counts_of(tables), 0.05).sum() <= 2
    planted = discoveries(counts_of([*tables, (60, 940, 440, 98_560)]), 0.05)
    assert planted[-1]


def test_nothing_is_rejected_of_nothing() -> None:
    assert benjamini_hochberg(np.empty(0), 0.05).tolist() == pytest.approx([])
