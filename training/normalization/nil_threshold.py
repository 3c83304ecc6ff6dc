"""When the best term is not good enough: the NIL threshold, and what any other would do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from models.normalization.model import NormalizationModel
from training.common.coding_split import pts_by_term, query, right_terms
from training.common.corpora import GoldCoding

DEFAULT_NIL = 0.45
#: Thresholds of the risk-coverage curve.
GRID = tuple(x / 20 for x in range(4, 20))
Decision = tuple[float, bool]


def decisions(model: NormalizationModel, golds: Sequence[GoldCoding]) -> list[Decision]:
    """For each mention the best score and whether that term is right."""
    terms = pts_by_term(model.terms)
    rows = []
    for coding, gold in zip(model.predict([query(g) for g in golds]), golds, strict=True):
        rows.append((coding.candidates[0].score, coding.candidates[0].pt in right_terms(gold, terms)))
    return rows


def best_threshold(rows: Sequence[Decision]) -> float:
    """Most right codings less wrong ones: a code stands where it is more likely right than wrong."""
    grid = [x / 100 for x in range(20, 91)]
    return max(grid, key=lambda t: sum(1 if hit else -1 for score, hit in rows if score >= t))


def risk_coverage(rows: Sequence[Decision]) -> list[dict[str, float]]:
    """For each threshold the share of mentions that are coded and how many of those are right."""
    found = []
    for threshold in GRID:
        coded = [hit for score, hit in rows if score >= threshold]
        accuracy = sum(coded) / len(coded) if coded else 0.0
        coverage = round(len(coded) / max(1, len(rows)), 4)
        found.append({"threshold": threshold, "coverage": coverage, "accuracy": round(accuracy, 4)})
    return found


def calibrated(
    model: NormalizationModel, validation: Sequence[GoldCoding], nil_below: float | None
) -> dict[str, Any]:
    """The threshold, unless it is given by validation, and what any other would do there."""
    if not validation:
        return {"nil_below": DEFAULT_NIL if nil_below is None else nil_below}
    found = decisions(model, validation)
    chosen = best_threshold(found) if nil_below is None else nil_below
    return {"nil_below": chosen, "risk_coverage": risk_coverage(found)}
