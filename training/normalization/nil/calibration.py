"""Fits the rule for NIL on terms removed from the terminology: `python -m training.normalization --like
RELEASE --calibrate`.

The queries are PsyTAR's validation mentions and the held-out lay phrases of the teaching corpus, which no
release was trained on. The rule is fitted, and its threshold chosen, on draws from one half of the preferred
terms, and reported on draws from the other.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import typer
from rich.console import Console

from models.normalization.model import NormalizationModel
from models.normalization.nil_rule import FEATURES, NilRule
from models.releases.manifest import Release, TrainingData
from training.common.build import build_release
from training.common.codings.removed_terms import Half, draws, shares
from training.common.codings.split import pts_by_term, query
from training.common.corpora import GoldCoding
from training.normalization.data import read
from training.normalization.nil.threshold import decisions, risk_coverage
from training.normalization.release import CALIBRATION, CANARY, scores
from training.normalization.settings import ALLOWED_LOSS
from training.teaching.readers import phrases

DRAWS = 12
PHRASES = TrainingData(
    name="teaching corpus of pvstream, held-out lay phrases, for the rule of NIL only", licence="CC0-1.0"
)
console = Console()


class NilExamples(NamedTuple):
    """Features and labels for the rule: the mentions of several draws, coded without the removed terms."""

    features: np.ndarray[Any, Any]
    """(mentions, FEATURES)"""
    right: np.ndarray[Any, Any]
    missing: np.ndarray[Any, Any]


def nil_examples(model: NormalizationModel, golds: Sequence[GoldCoding], half: Half) -> NilExamples:
    """The draws from a half; each mention is embedded once."""
    vectors = dict(zip(golds, model.embed([query(g) for g in golds])[0], strict=True))
    parts = [(np.zeros((0, len(FEATURES))), np.zeros(0, bool), np.zeros(0, bool))]
    for draw in draws(golds, pts_by_term(model.terms), half, DRAWS):
        if not draw.mentions:
            continue
        lacking = model.without(draw.removed)
        found = lacking.nil_inputs(
            [query(g) for g in draw.mentions], np.stack([vectors[g] for g in draw.mentions])
        )
        hits = [pt in right for (_, pt), right in zip(found, draw.right, strict=True)]
        parts.append((np.stack([f for f, _ in found]), np.array(hits), np.array(draw.missing)))
    return NilExamples(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def fitted(rows: NilExamples, allowed_loss: float = ALLOWED_LOSS) -> NilRule:
    """A logistic regression of known against missing concepts, both weighing the same. The threshold is the
    confidence that `allowed_loss`, 0 to 1, of the right codings fall below. Raises typer.BadParameter where
    there is no right coding or no missing concept.
    """
    from sklearn.linear_model import (  # type: ignore[import-untyped]  # noqa: PLC0415  a second to import
        LogisticRegression,
    )

    if not (rows.right & ~rows.missing).any() or not rows.missing.any():
        raise typer.BadParameter("no mention of the development half is coded right, or none is missing")
    mean, deviation = rows.features.mean(0), rows.features.std(0) + 1e-9
    found = LogisticRegression(class_weight="balanced").fit((rows.features - mean) / deviation, ~rows.missing)
    weights = found.coef_[0] / deviation
    bias = float(found.intercept_[0] - (weights * mean).sum())
    rule = NilRule(tuple(round(float(w), 4) for w in weights), round(bias, 4), 0.0)
    confidences = np.array([rule.confidence(f) for f in rows.features])
    below = float(np.quantile(confidences[rows.right & ~rows.missing], allowed_loss))
    return NilRule(rule.weights, rule.bias, round(below, 4))


def report(rule: NilRule, rows: NilExamples) -> dict[str, float]:
    """The shares of `removed_terms.shares`, and the accuracy of known concepts at 80 % coverage."""
    return _report(np.array([rule.confidence(f) for f in rows.features]), rule.below, rows)


def by_cosine(nil_below: float, rows: NilExamples) -> dict[str, float]:
    """The same for a threshold on the best cosine."""
    return _report(rows.features[:, FEATURES.index("cosine")], nil_below, rows)


def _report(confidences: np.ndarray[Any, Any], below: float, rows: NilExamples) -> dict[str, float]:
    known = ~rows.missing
    order = np.argsort(-confidences[known], kind="stable")
    covered = rows.right[known][order][: round(0.8 * known.sum())]
    found = shares(confidences < below, rows.right, rows.missing)
    return found | {"accuracy_at_80": round(float(covered.mean()), 4)}


def recalibrated(
    release: Release,
    data: Path,
    output: Path,
    device: torch.device | str = "cpu",
    allowed_loss: float = ALLOWED_LOSS,
) -> Release:
    """The same release with a rule for NIL and its measured effect; the files are not changed."""
    model = NormalizationModel.load(release, device=str(device))
    valid = read(data).valid
    golds = list(dict.fromkeys([*valid, *phrases("held_out")]))
    model.nil_rule, reports = _rule_and_reports(model, golds, allowed_loss)
    manifest = release.manifest
    configuration = manifest.configuration | {
        "nil_rule": model.nil_rule.stored(),
        "nil_loss": allowed_loss,
        "nil_calibration": reports,
        "risk_coverage": risk_coverage(decisions(model, valid)),
    }
    with tempfile.TemporaryDirectory(prefix="normalization-") as name:
        for file in manifest.files:
            shutil.copyfile(release.file(file), Path(name) / file)
        return build_release(
            Path(name),
            task="normalization",
            kind=manifest.kind,
            base=manifest.base,
            base_sha256=manifest.base_sha256,
            configuration=configuration,
            training_data=list(dict.fromkeys([*manifest.training_data, CALIBRATION, PHRASES])),
            canary=CANARY,
            scores=lambda loaded: scores(loaded, data),
            root=output,
            device=device,
        )


def _rule_and_reports(
    model: NormalizationModel, golds: Sequence[GoldCoding], allowed_loss: float
) -> tuple[NilRule, dict[str, Any]]:
    """The rule fitted on one half of the terms, and what it and the cosine alone do on either half."""
    halves: tuple[Half, Half] = ("development", "test")
    development, test = (nil_examples(model, golds, half) for half in halves)
    rule = fitted(development, allowed_loss)
    reports = {
        "development": report(rule, development),
        "test": report(rule, test),
        "test_by_cosine": by_cosine(model.nil_below, test),
    }
    console.print(reports)
    return rule, reports
