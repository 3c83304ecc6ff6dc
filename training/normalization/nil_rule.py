"""The rule for NIL of a release, fitted on terms that are taken out of its terminology, and the threshold on
the cosine that it would have without one.

The queries are PsyTAR's validation mentions and the held-out lay phrases of the teaching corpus, which no
release was trained on; the terms are from one half of the preferred terms. The evaluation `removed_terms`
measures the rule on the other half, beside the threshold alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

from models.normalization.model import NormalizationModel
from models.normalization.nil_rule import FEATURES, NilRule
from training.common.codings.removed_terms import draws
from training.common.codings.split import pts_by_term, query, right_terms
from training.common.corpora import GoldCoding
from training.teaching.readers import phrases

DRAWS = 12
#: Share of the right codings that the rule may lose on the terms it is fitted on.
ALLOWED_LOSS = 0.1
console = Console()


class NilExamples(NamedTuple):
    """Features and labels for the rule: the mentions of several draws, coded without the removed terms."""

    features: np.ndarray[Any, Any]
    """(mentions, FEATURES)"""
    right: np.ndarray[Any, Any]
    missing: np.ndarray[Any, Any]


def with_nil(model: NormalizationModel, valid: Sequence[GoldCoding]) -> dict[str, Any]:
    """Gives a model without a rule its threshold and its rule, and returns what a configuration says of them.
    There is no rule where no mention is coded right or no concept is missing.
    """
    model.nil_below = best_threshold(decisions(model, valid))
    model.forget()
    rows = nil_examples(model, list(dict.fromkeys([*valid, *phrases("held_out")])))
    if not (rows.right & ~rows.missing).any() or not rows.missing.any():
        console.print("no rule for NIL: no mention is coded right, or no concept is missing")
        return {"nil_below": model.nil_below}
    model.nil_rule = fitted(rows)
    return {"nil_below": model.nil_below, "nil_rule": model.nil_rule.stored(), "nil_loss": ALLOWED_LOSS}


def decisions(model: NormalizationModel, golds: Sequence[GoldCoding]) -> list[tuple[float, bool]]:
    """For each mention the best cosine, and whether the best term is right."""
    terms = pts_by_term(model.terms)
    codings = model.predict([query(g) for g in golds])
    best = [coding.candidates[0] for coding in codings]
    return [(b.score, b.pt in right_terms(g, terms)) for b, g in zip(best, golds, strict=True)]


def best_threshold(rows: Sequence[tuple[float, bool]]) -> float:
    """The threshold with the most right codings less wrong ones: a code is accepted where it is more likely
    right than wrong.
    """
    grid = [x / 100 for x in range(20, 91)]
    return max(grid, key=lambda t: sum(1 if hit else -1 for score, hit in rows if score >= t))


def nil_examples(model: NormalizationModel, golds: Sequence[GoldCoding]) -> NilExamples:
    """The draws; each mention is embedded once."""
    vectors = dict(zip(golds, model.embed([query(g) for g in golds]), strict=True))
    parts = [(np.zeros((0, len(FEATURES))), np.zeros(0, bool), np.zeros(0, bool))]
    for draw in draws(golds, pts_by_term(model.terms), "development", DRAWS):
        if not draw.mentions:
            continue
        lacking = model.without(draw.removed)
        found = lacking.nil_inputs(
            [query(g) for g in draw.mentions], np.stack([vectors[g] for g in draw.mentions])
        )
        hits = [pt in right for (_, pt), right in zip(found, draw.right, strict=True)]
        parts.append((np.stack([f for f, _ in found]), np.array(hits), np.array(draw.missing)))
    return NilExamples(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def fitted(rows: NilExamples) -> NilRule:
    """A logistic regression of known against missing concepts, both weighing the same. The threshold is the
    confidence that ALLOWED_LOSS of the right codings fall below.
    """
    from sklearn.linear_model import (  # type: ignore[import-untyped]  # noqa: PLC0415  a second to import
        LogisticRegression,
    )

    mean, deviation = rows.features.mean(0), rows.features.std(0) + 1e-9
    found = LogisticRegression(class_weight="balanced").fit((rows.features - mean) / deviation, ~rows.missing)
    weights = found.coef_[0] / deviation
    bias = float(found.intercept_[0] - (weights * mean).sum())
    rule = NilRule(tuple(round(float(w), 4) for w in weights), round(bias, 4), 0.0)
    confidences = np.array([rule.confidence(f) for f in rows.features])
    below = float(np.quantile(confidences[rows.right & ~rows.missing], ALLOWED_LOSS))
    return NilRule(rule.weights, rule.bias, round(below, 4))
