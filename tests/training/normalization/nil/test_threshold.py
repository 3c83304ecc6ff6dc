"""The NIL threshold and the risk-coverage curve."""

from __future__ import annotations

from training.normalization.nil.threshold import best_threshold, risk_coverage


def test_the_risk_coverage_curve_counts_coded_mentions_and_right_codings() -> None:
    rows = [(0.9, True), (0.5, False), (0.3, False)]
    curve = {row["threshold"]: row for row in risk_coverage(rows)}
    assert (curve[0.2]["coverage"], curve[0.2]["accuracy"]) == (1.0, 0.3333)
    assert (curve[0.6]["coverage"], curve[0.6]["accuracy"]) == (0.3333, 1.0)
    assert (curve[0.95]["coverage"], curve[0.95]["accuracy"]) == (0.0, 0.0)


def test_the_best_threshold_has_the_most_right_codings_less_wrong_ones() -> None:
    rows = [(0.9, True), (0.5, False), (0.3, False)]
    # From 0.51 on only the right one is coded.
    assert best_threshold(rows) == 0.51
    assert best_threshold([*rows, (0.4, True), (0.45, True), (0.35, True)]) == 0.31
