"""Chooses the NIL threshold: the score below which the best term is not accepted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from models.normalization.model import NormalizationModel
from training.common.codings.split import pts_by_term, query, right_terms
from training.common.corpora import GoldCoding

DEFAULT_NIL = 0.45
#: Thresholds of the risk-coverage curve.
GRID = tuple(x / 20 for x in range(4, 20))
Decision = tuple[float, bool]


def decisions(model: NormalizationModel, golds: Sequence[GoldCoding]) -> list[Decision]:
    """For each mention the confidence, or else the best cosine, and whether the best term is right."""
    terms = pts_by_term(model.terms)
    rows = []
    for coding, gold in zip(model.predict([query(g) for g in golds]), golds, strict=True):
        best = coding.candidates[0]
        score = best.score if coding.confidence is None else coding.confidence
        rows.append((score, best.pt in right_terms(gold, terms)))
    return rows


def best_threshold(rows: Sequence[Decision]) -> float:
    """The threshold with the most right codings less wrong ones: a code is accepted where it is more likely
    right than wrong.
    """
    grid = [x / 100 for x in range(20, 91)]
    return max(grid, key=lambda t: sum(1 if hit else -1 for score, hit in rows if score >= t))


def risk_coverage(rows: Sequence[Decision]) -> list[dict[str, float]]:
    """For each threshold the share of mentions that are coded and the accuracy of these codings."""
    curve = []
    for threshold in GRID:
        coded = [hit for score, hit in rows if score >= threshold]
        accuracy = sum(coded) / len(coded) if coded else 0.0
        coverage = round(len(coded) / max(1, len(rows)), 4)
        curve.append({"threshold": threshold, "coverage": coverage, "accuracy": round(accuracy, 4)})
    return curve


def calibrated(model: NormalizationModel, validation: Sequence[GoldCoding]) -> dict[str, Any]:
    """The threshold, chosen on the validation part, and the risk-coverage curve; without one DEFAULT_NIL."""
    if not validation:
        return {"nil_below": DEFAULT_NIL}
    rows = decisions(model, validation)
    return {"nil_below": best_threshold(rows), "risk_coverage": risk_coverage(rows)}
