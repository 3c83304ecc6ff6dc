"""How probable it is that the short question of a message has a word of it: a logistic regression over the
vectors of the message's words. It knows names that no list has by the words around them.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from models.summarization.medical_entities import word_keys
from models.types import Span

#: Features of a word beside its vectors.
_NUMBERS = 6
#: Minimum letters of a word that is judged.
_LEAST_LETTERS = 3
#: A phrase has a word that is at least so probable, and words beside it that are at least this probable.
PEAK, _BESIDE = 0.2, 0.15
#: Of the phrases of a message only the most probable are compared.
_MOST = 8
_LONGEST = 4
_LINK = re.compile(r"(?:of|in|on)(?: (?:the|my|her|his))?", re.IGNORECASE)


#: Words that a candidate neither begins nor ends with, and that end a phrase.
FUNCTION_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a about after also am an and any are as at be because been being but by can caused causes cause "
        "could diagnosed did do does for from get getting got had has have having he her his how i if in "
        "into is it know like me my of on or our please severe she so some suffer suffering suffers than "
        "that the their them there they this to treat us very was we were what when where which who why "
        "will with would you your",
    )
)


class KeyWords:
    """The logistic regression of a release."""

    def __init__(self, weights: Tensor, dimension: int) -> None:
        """`weights`: (features,), see `word_features`; ValueError where vectors have another dimension."""
        if weights.shape != (2 * dimension + _NUMBERS,):
            raise ValueError(f"key words: weights of shape {tuple(weights.shape)} for {dimension} dimensions")
        self.weights = weights

    def probabilities(self, text: str, spans: Sequence[Span], vectors: Tensor) -> list[float]:
        """Of each word of a text; 0 for a word that is not judged. `vectors`: (words, dimension)."""
        judged, x = word_features(text, spans, vectors)
        out = [0.0] * len(spans)
        for i, p in zip(judged, (x @ self.weights).sigmoid().tolist(), strict=True):
            out[i] = p
        return out


def word_features(text: str, spans: Sequence[Span], vectors: Tensor) -> tuple[list[int], Tensor]:
    """The words that are judged, and (judged, 2 * dimension + 6): the vector of each in its context, its
    difference to the mean over the message, how often the word is there, its place, the number of words, a
    capital, letters, and 1.
    """
    keys = [word_key(text, s) for s in spans]
    counts, n = Counter(keys), len(spans)
    judged = [i for i, k in enumerate(keys) if len(k) >= _LEAST_LETTERS and k not in FUNCTION_WORDS]
    numbers = [
        [
            math.log(counts[keys[i]]),
            i / n,
            math.log(n),
            float(text[spans[i].start].isupper()),
            len(keys[i]) / 10,
            1.0,
        ]
        for i in judged
    ]
    own = vectors[judged]
    centred = own - vectors.mean(0) if n else own
    return judged, torch.cat([own, centred, torch.tensor(numbers).reshape(-1, _NUMBERS)], dim=1)


def word_key(text: str, span: Span) -> str:
    """A word as `word_keys` compares it; empty for punctuation."""
    return next(iter(word_keys(text[span.start : span.end])), "")


def phrases(text: str, spans: Sequence[Span], probabilities: Sequence[float]) -> list[Span]:
    """Probable words with less probable ones beside them, "blood in semen", the most probable first."""
    found: dict[Span, float] = {}
    for first, last in _runs(text, spans, probabilities):
        best = max(probabilities[first : last + 1])
        if best >= PEAK and last - first < _LONGEST:
            found[Span(spans[first].start, spans[last].end)] = best
        for i in range(first, last + 1):
            if probabilities[i] >= PEAK:
                found.setdefault(spans[i], probabilities[i])
    return sorted(found, key=lambda s: (-round(found[s], 9), s.start - s.end, s.start))[:_MOST]


def _runs(text: str, spans: Sequence[Span], probabilities: Sequence[float]) -> Iterator[tuple[int, int]]:
    """First and last word of each run of words that are probable enough, joined by "of" and "in"."""
    likely = [i for i, p in enumerate(probabilities) if p >= _BESIDE]
    start = previous = None
    for i in likely:
        if start is None or previous is None:
            start = i
        else:
            between = text[spans[previous].end : spans[i].start]
            if between.strip("-") and between.strip() and not _LINK.fullmatch(between.strip()):
                yield start, previous
                start = i
        previous = i
    if start is not None and previous is not None:
        yield start, previous
