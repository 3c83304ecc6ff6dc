"""A logistic rule over the search results: whether the terminology has the concept of a mention at all.

The best cosine alone says little: a missing concept usually has a near neighbour, and rare words for a known
one have a low cosine. The rule also uses the distance to the next preferred term, the share of the
neighbourhood that belongs to the best one, the letters that mention and term share, the length of the
mention, and how many of its words the names of the best one have.

A code with a serious term needs more than being the nearest: a wrong one is the costliest error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import exp

import numpy as np
from numpy.typing import NDArray

from models.types import Candidate

FEATURES = ("cosine", "margin", "share", "overlap", "words", "covered")
#: Features that the rules of older releases have not.
_LATER = frozenset({"covered"})
#: Letters by which two words are the same.
_STEM = 5
_WORD = re.compile(r"[\w']+")
#: Temperature of the softmax over the nearest rows, as in training.
TEMPERATURE = 0.05
Floats = NDArray[np.float64]
#: Cosine from which on a serious term is believed that shares no letters with the mention. Of PsyTAR's 4,137
#: coded mentions 12 have such a code: 11 right, from .90 on, one wrong, at .70. Of 3,547 tweets and reviews
#: that were read four have: two right, from .85 on, two wrong, up to .72. Other terms have no such
#: bound: below .75 as many codes of those tweets and reviews are right as wrong.
BELIEVED = 0.8
#: In a post such letters are mostly a word of another language, a name or a slip.
_SHORT = re.compile(r"(?:(?:an?|the|my) )?[a-z]{2}")


@dataclass(frozen=True, slots=True)
class NilRule:
    """confidence = sigmoid(bias + weights * features); a coding is NIL where it is lower than `below`."""

    weights: tuple[float, ...]
    """of FEATURES"""
    bias: float
    below: float

    @classmethod
    def of(cls, stored: Mapping[str, float]) -> NilRule:
        """The rule in a manifest's configuration; KeyError where a weight is missing that all rules have."""
        weights = (0.0 if name in _LATER and name not in stored else stored[name] for name in FEATURES)
        return cls(tuple(weights), stored["bias"], stored["below"])

    def stored(self) -> dict[str, float]:
        """The form in which a manifest has it."""
        return dict(zip(FEATURES, self.weights, strict=True)) | {"bias": self.bias, "below": self.below}

    def confidence(self, features: Floats) -> float:
        """0 to 1, rounded to four decimals as scores are."""
        logit = self.bias + float(features @ np.array(self.weights))
        return round(1 / (1 + exp(-min(max(logit, -50.0), 50.0))), 4)


def features(surface: str, names: Sequence[str], cosines: Floats, same: NDArray[np.bool_]) -> Floats:
    """(6,) FEATURES. `cosines`: of the nearest rows, best first, at least one; `same`: which of them have the
    preferred term that is judged, at least one; `names`: the terms or phrases of these.
    """
    best, others = cosines[same][0], cosines[~same]
    near = np.exp((cosines - cosines[0]) / TEMPERATURE)
    return np.array(
        [
            best,
            best - (others[0] if len(others) else cosines[-1]),
            np.log(near[same].sum() / near.sum()),
            overlap(surface, names[0]),
            len(surface.split()),
            covered(surface, names),
        ]
    )


def overlap(one: str, other: str) -> float:
    """Jaccard index of the 3- and 4-grams of characters, 0 to 1, case ignored."""
    left, right = _grams(one), _grams(other)
    return len(left & right) / max(1, len(left | right))


def covered(surface: str, names: Sequence[str]) -> float:
    """The share of the words of `surface` that one of the names has, 0 to 1, by their first letters."""
    words = _stems(surface)
    return len(words & {word for name in names for word in _stems(name)}) / max(1, len(words))


@lru_cache(maxsize=4096)
def _stems(text: str) -> frozenset[str]:
    """Cached, because the names near one mention are near many others."""
    return frozenset(word[:_STEM] for word in _WORD.findall(text.lower()))


def _grams(text: str) -> set[str]:
    padded = f"  {text.lower()} "
    return {padded[i : i + n] for n in (3, 4) for i in range(len(padded) - n + 1)}


def lacks_evidence(surface: str, best: Candidate) -> bool:
    """Whether a mention says too little for its best candidate, if the term of that is serious: they share no
    3- or 4-gram of letters, and their cosine is low.
    """
    return best.score < BELIEVED and not (overlap(surface, best.llt) or overlap(surface, best.pt))


def is_short_form_of_posts(surface: str) -> bool:
    """Whether a mention in a post is two small letters ("mi", "a pe"), which are no serious event there."""
    return _SHORT.fullmatch(" ".join(surface.split())) is not None
