"""Drift: the distance of texts and answers from the reference of a release, its texts and answers when made.

Each feature of a text is a histogram, compared by the population stability index. The vectors of the texts
are compared by the cosine of their means.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from models.releases import store
from models.releases.manifest import Release, ReleaseError

#: The file of a release with its reference.
REFERENCE = "reference.json"
MAX_BYTES = 1 << 20
#: Characters of a text that are cut into pieces; its vector is that of its first window anyway.
MOST_CHARACTERS = 10_000
Feature = Literal["text_length", "unknown_pieces", "found", "score"]
FEATURES: tuple[Feature, ...] = ("text_length", "unknown_pieces", "found", "score")
#: Upper bounds of the bins of features that are mostly zero, for which quantiles would coincide.
FIXED: dict[Feature, tuple[float, ...]] = {
    "unknown_pieces": (1e-9, 0.02, 0.05, 0.1),
    "found": (0.5, 1.5, 2.5, 3.5, 4.5),
}
BINS = 10
Floats = NDArray[np.float64]
_Finite = Annotated[float, Field(allow_inf_nan=False)]


class Histogram(BaseModel):
    """`counts` of the values below the first edge, between each two, and from the last one on."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    edges: Annotated[list[_Finite], Field(max_length=100)]
    counts: list[Annotated[int, Field(ge=0)]]

    @model_validator(mode="after")
    def _fits(self) -> Histogram:
        if self.edges != sorted(self.edges) or len(self.counts) != len(self.edges) + 1:
            raise ValueError("edges rise, and there is one count more than edges")
        return self

    def bin(self, value: float) -> int:
        """The position of the count that the value belongs to."""
        return bisect_right(self.edges, value)


class Reference(BaseModel):
    """The distributions of the features of a release's own texts, and the unit vector of their mean,
    which is empty for a model without an encoder.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    made_from: str
    texts: Annotated[int, Field(ge=1)]
    histograms: dict[Feature, Histogram]
    mean: Annotated[list[_Finite], Field(max_length=4096)]


@dataclass(frozen=True, slots=True)
class TextFeatures:
    """The features of a text; the last two are those that an encoder gives."""

    length: int
    """in characters"""
    unknown: float | None
    """share of word pieces that the vocabulary lacks"""
    vector: Floats
    """unit vector (dimension,) of its mean hidden state"""


def text_features(encoder: Any, texts: Sequence[str]) -> list[TextFeatures]:
    """The features of each text by a `models.encoder.model.Encoder`; by None those that need none."""
    if encoder is None:
        return [TextFeatures(len(text), None, np.zeros(0)) for text in texts]
    if not texts:
        return []
    unknown = encoder.tokenizer.unk_token_id
    pieces = encoder.tokenizer(
        [text[:MOST_CHARACTERS] for text in texts],
        add_special_tokens=False,
        return_attention_mask=False,
        verbose=False,
    )["input_ids"]
    vectors = encoder.embed([text[:MOST_CHARACTERS] for text in texts]).double().numpy()
    return [
        TextFeatures(len(text), own.count(unknown) / max(1, len(own)), vector)
        for text, own, vector in zip(texts, pieces, vectors, strict=True)
    ]


def values(features: TextFeatures, scores: Sequence[float]) -> dict[Feature, list[float]]:
    """The values of each feature of a text in which answers with these scores were found."""
    return {
        "text_length": [float(features.length)],
        "unknown_pieces": [] if features.unknown is None else [features.unknown],
        "found": [float(len(scores))],
        "score": list(scores),
    }


def make_reference(
    made_from: str, texts: Sequence[TextFeatures], scores: Sequence[Sequence[float]]
) -> Reference:
    """The reference of texts with the scores of what was found in each."""
    collected: dict[Feature, list[float]] = {feature: [] for feature in FEATURES}
    for own, found in zip(texts, scores, strict=True):
        for feature, numbers in values(own, found).items():
            collected[feature] += numbers
    mean = np.mean([t.vector for t in texts], axis=0)
    return Reference(
        made_from=made_from,
        texts=len(texts),
        histograms={f: _histogram(collected[f], FIXED.get(f)) for f in FEATURES},
        mean=[round(float(x), 5) for x in mean / np.linalg.norm(mean)],
    )


def _histogram(numbers: Sequence[float], fixed: Sequence[float] | None) -> Histogram:
    """With the given edges; else with bins of about equal counts, and one on each side for values that the
    reference does not have.
    """
    edges = list(fixed or [])
    if fixed is None and numbers:
        quantiles = np.quantile(numbers, [i / BINS for i in range(1, BINS)])
        inner = (round(float(q), 4) for q in quantiles)
        edges = sorted({min(numbers), *inner, max(numbers) + 1e-4})
    counts = np.bincount([bisect_right(edges, x) for x in numbers], minlength=len(edges) + 1)
    return Histogram(edges=edges, counts=[int(n) for n in counts])


def stability_index(expected: Sequence[int], observed: Sequence[int]) -> float:
    """The population stability index of two histograms with the same bins: 0 for equal shares, and beyond
    0.25 by convention another population. Half a value is added to each bin, so that an empty one is finite.
    """
    p, q = (np.asarray(counts, float) + 0.5 for counts in (expected, observed))
    p, q = p / p.sum(), q / q.sum()
    return float(((q - p) * np.log(q / p)).sum())


def cosine_distance(one: Sequence[float] | Floats, other: Sequence[float] | Floats) -> float:
    """1 minus the cosine of two vectors; 1 where one is zero."""
    a, b = np.asarray(one, float), np.asarray(other, float)
    norms = float(np.linalg.norm(a) * np.linalg.norm(b))
    return 1.0 - float(a @ b) / norms if norms else 1.0


def read_reference(release: Release) -> Reference | None:
    """The reference among the files of a release or, for a bundled one, beside its directory; None where
    there is none. Raises ReleaseError where it is not valid.
    """
    path = beside(release)
    if REFERENCE in release.manifest.files:
        path = release.file(REFERENCE)
    elif store.BUNDLED not in path.parents or not path.is_file():
        return None
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ReleaseError(f"{release.version}: {REFERENCE} is larger than {MAX_BYTES} bytes")
        return Reference.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise ReleaseError(f"{release.version}: {REFERENCE}: {error.errors()[0]['msg']}") from None


def beside(release: Release) -> Path:
    """Where the reference of an older bundled release is: one file more would change its version."""
    return release.path.with_name(f"{release.version}.{REFERENCE}")
