"""Whether the terminology has the concept of a mention at all: a logistic rule over what the search found.

The best cosine alone says little: a concept that is missing usually has a near neighbour, and rare words for
a known one have a low cosine. The rule also asks how far the next preferred term is, how much of the
neighbourhood belongs to the best one, whether both share letters, and how long the mention is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp

import numpy as np
from numpy.typing import NDArray

FEATURES = ("cosine", "margin", "share", "overlap", "words")
#: Temperature of the softmax over the nearest rows, as in training.
TEMPERATURE = 0.05
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class NilRule:
    """confidence = sigmoid(bias + weights * features); a coding is NIL where it is lower than `below`."""

    weights: tuple[float, ...]
    """of FEATURES"""
    bias: float
    below: float

    @classmethod
    def of(cls, stored: Mapping[str, float]) -> NilRule:
        """The rule in a manifest's configuration; KeyError where a weight is missing."""
        return cls(tuple(stored[name] for name in FEATURES), stored["bias"], stored["below"])

    def stored(self) -> dict[str, float]:
        """The form in which a manifest has it."""
        return dict(zip(FEATURES, self.weights, strict=True)) | {"bias": self.bias, "below": self.below}

    def confidence(self, features: Floats) -> float:
        """0 to 1, rounded to four decimals as scores are."""
        logit = self.bias + float(features @ np.array(self.weights))
        return round(1 / (1 + exp(-min(max(logit, -50.0), 50.0))), 4)


def features(surface: str, name: str, cosines: Floats, same: NDArray[np.bool_]) -> Floats:
    """(5,) FEATURES. `name`: the nearest term or phrase of the preferred term that is judged; `cosines`: of
    the nearest rows, best first, at least one; `same`: which of them have that preferred term, at least one.
    """
    best, others = cosines[same][0], cosines[~same]
    near = np.exp((cosines - cosines[0]) / TEMPERATURE)
    return np.array(
        [
            best,
            best - (others[0] if len(others) else cosines[-1]),
            np.log(near[same].sum() / near.sum()),
            overlap(surface, name),
            len(surface.split()),
        ]
    )


def overlap(one: str, other: str) -> float:
    """Jaccard index of the 3- and 4-grams of characters, 0 to 1, case ignored."""
    left, right = _grams(one), _grams(other)
    return len(left & right) / max(1, len(left | right))


def _grams(text: str) -> set[str]:
    padded = f"  {text.lower()} "
    return {padded[i : i + n] for n in (3, 4) for i in range(len(padded) - n + 1)}
