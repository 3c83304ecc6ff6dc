"""The threshold and the rule for NIL."""

from __future__ import annotations

import numpy as np
import pytest

from models.normalization.nil_rule import FEATURES
from training.normalization.nil_rule import ALLOWED_LOSS, NilExamples, best_threshold, fitted


def test_the_best_threshold_has_the_most_right_codings_less_wrong_ones() -> None:
    rows = [(0.9, True), (0.5, False), (0.3, False)]
    # From 0.51 on only the right one is coded.
    assert best_threshold(rows) == 0.51
    assert best_threshold([*rows, (0.4, True), (0.45, True), (0.35, True)]) == 0.31


def test_the_rule_separates_missing_concepts_and_loses_a_share_of_the_right_codings() -> None:
    rng = np.random.default_rng(1)
    features = rng.normal(size=(1000, len(FEATURES)))
    missing = features[:, 0] + 0.5 * rng.normal(size=1000) < 0
    rule = fitted(NilExamples(features, ~missing, missing))
    nil = np.array([rule.confidence(row) < rule.below for row in features])
    assert nil[~missing].mean() == pytest.approx(ALLOWED_LOSS, abs=0.01)
    assert nil[missing].mean() > 0.6
