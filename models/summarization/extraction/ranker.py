"""A linear ranker: the score of a candidate is the sum of its weighted features."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from models.tables import read_tsv

#: Files of a release: of what a message is about, which sentence asks, which name that question lacks.
FOCUS_RANKER = "focus_ranker.tsv"
ANSWER_RANKER = "answer_ranker.tsv"
INSERTION_RANKER = "insertion_ranker.tsv"
_COLUMNS = ("feature", "weight")


class LinearRanker:
    """Weights by feature; candidates are compared within one text."""

    def __init__(self, weights: dict[str, float], features: Sequence[str]) -> None:
        """Raises ValueError unless there is one finite weight for each of `features`."""
        if sorted(weights) != sorted(features) or not all(map(math.isfinite, weights.values())):
            raise ValueError(f"a finite weight is needed for each of {', '.join(features)}")
        self.weights = [weights[name] for name in features]

    @classmethod
    def load(cls, path: Path, features: Sequence[str]) -> LinearRanker:
        """Raises ValueError where the table has other features."""
        return cls({row[0]: float(row[1]) for row in read_tsv(path, _COLUMNS)}, features)

    def scores(self, rows: Sequence[Sequence[float]]) -> list[float]:
        """One score for each row of features; only differences within a text mean something."""
        return [sum(w * x for w, x in zip(self.weights, row, strict=True)) for row in rows]


def save(weights: dict[str, float], path: Path) -> None:
    """Writes the table of a ranker's weights."""
    rows = [f"{name}\t{weight:.6g}" for name, weight in weights.items()]
    path.write_text("\n".join(["\t".join(_COLUMNS), *rows]) + "\n", encoding="utf-8")


def softmax(scores: Sequence[float]) -> list[float]:
    """Probabilities of candidates from their scores."""
    if not scores:
        return []
    highest = max(scores)
    exponents = [math.exp(s - highest) for s in scores]
    total = sum(exponents)
    return [e / total for e in exponents]
