"""Calibration of the margin by which the best long form must lead for an acronym to be expanded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.acronym.prototypes import Mixture
from training.acronym.prototypes import SOURCE_WEIGHTS, RowScores, best_long_forms, mixed

Floats = NDArray[np.float64]
#: Accuracy of the expansions that are made.
WANTED = 0.85
#: Margins that are tried.
GRID = tuple(round(0.02 * n, 2) for n in range(50))


class Margin(NamedTuple):
    """A margin with the means over the sources, by SOURCE_WEIGHTS, of the share of expanded rows and of their
    accuracy.
    """

    margin: float
    coverage: float
    accuracy: float


def chosen_margin(sources: Mapping[str, Sequence[RowScores]], mixture: Mixture) -> Margin:
    """The smallest margin with accuracy WANTED; where there is none, the one with the best accuracy."""
    marked = [_margins(rows, mixture) for rows in sources.values()]
    weights = [SOURCE_WEIGHTS.get(name, 1.0) for name in sources]
    tried = [_over_sources(margin, marked, weights) for margin in GRID]
    good = [m for m in tried if m.accuracy >= WANTED]
    return good[0] if good else max(tried, key=lambda m: m.accuracy)


def _margins(scored: Sequence[RowScores], mixture: Mixture) -> Floats:
    """(rows, 2): by how much the best share is ahead of the second, and whether it is right."""
    out = []
    for row, best in zip(scored, best_long_forms(scored, mixture), strict=True):
        shares = mixed(row, mixture).softmax(0).sort(descending=True).values.tolist()
        out.append((shares[0] - shares[1] if len(shares) > 1 else 1.0, best == row.row.gold))
    return np.array(out, np.float64)


def _over_sources(margin: float, marked: Sequence[Floats], weights: Sequence[float]) -> Margin:
    kept = [rows[rows[:, 0] >= margin, 1] for rows in marked]
    coverage = [len(part) / len(rows) for part, rows in zip(kept, marked, strict=True)]
    right = [(float(part.mean()), weight) for part, weight in zip(kept, weights, strict=True) if len(part)]
    accuracy = sum(mean * w for mean, w in right) / sum(w for _, w in right) if right else 0.0
    return Margin(margin, float(np.average(coverage, weights=weights)), accuracy)
