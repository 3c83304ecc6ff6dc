"""A supplement of a release: what reviewers decided decides what is nearly the same, pairs of a drug and an
effect of a relation release, wordings of effects of a normalization release.

It is a small release without a network. Its manifest names the release that it extends; its files hold the
vectors of the pairs or wordings in that release's space, and the decision behind each. No words of a report
are in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError
from safetensors.torch import save_file

from models.encoder.faiss_index import CosineIndex
from models.releases.manifest import Release, ReleaseError
from models.releases.tensors import read_tensors
from models.types import Neighbour

Floats = NDArray[np.float32]
VECTORS, DECISIONS = "decided.safetensors", "decided.json"
#: In the file of vectors, also of wordings.
_TENSOR = "pairs"
#: Key of the configuration: the least cosine to a decided vector that decides.
LEAST_COSINE = "least_cosine"
#: A vector has a cosine a little below 1 with itself in another number format.
ROUNDING = 0.0001


@dataclass(frozen=True, slots=True)
class Decision:
    """A reviewer's decision; the names are those of tables, not of the report."""

    report: str
    """id"""
    sequence: int
    """of the decision on the topic `reviews`"""
    reviewer: str
    related: bool
    """of a wording always true"""
    drug: str = ""
    effect: str = ""
    """preferred term; empty where a reviewer found none that fits a wording"""


_DECISIONS = TypeAdapter(list[Decision])


class Decided:
    """The vectors of a supplement with their decisions."""

    def __init__(self, vectors: Floats, decisions: Sequence[Decision], least_cosine: float) -> None:
        """`vectors`: (decisions, dimension)."""
        self._index = CosineIndex(vectors)
        self._decisions = decisions
        self._least_cosine = least_cosine

    @classmethod
    def load(cls, release: Release, dimension: int) -> Decided:
        """`dimension` is that of a vector. Raises ReleaseError when files or setting do not fit it or each
        other.
        """
        try:
            decisions = _DECISIONS.validate_json(release.file(DECISIONS).read_bytes(), strict=True)
        except ValidationError as error:
            raise ReleaseError(f"{release.version}: {DECISIONS}: {error.errors()[0]['msg']}") from None
        vectors = read_tensors(release.file(VECTORS))[_TENSOR]
        least = release.manifest.configuration[LEAST_COSINE]
        if vectors.shape != (len(decisions), dimension) or not 0 < least <= 1:
            raise ReleaseError(f"{release.version}: the decisions do not fit the release or each other")
        return cls(vectors.float().numpy(), decisions, least)

    def deciding(self, vectors: Floats, nearest: Floats) -> list[Neighbour | None]:
        """For each vector, (vectors, dimension), the nearest decision; None where that is not near enough, or
        less near than the nearest that the release has itself, whose cosines are `nearest`, (vectors,).
        """
        cosines, rows = self._index.search(vectors, 1)
        least = np.maximum(nearest - ROUNDING, self._least_cosine)
        return [
            self._neighbour(int(row), float(cosine)) if cosine >= own_least else None
            for (cosine,), (row,), own_least in zip(cosines, rows, least, strict=True)
        ]

    def _neighbour(self, row: int, cosine: float) -> Neighbour:
        decision = self._decisions[row]
        return Neighbour(
            decision.report, round(1 - cosine, 4), decision.drug, decision.effect, decision.related,
            f"review {decision.sequence}",
        )  # fmt: skip


def write(folder: Path, vectors: Sequence[Floats], decisions: Sequence[Decision]) -> None:
    """Writes the files of a supplement; equal arguments give equal bytes."""
    save_file({_TENSOR: torch.from_numpy(np.stack(vectors)).half()}, folder / VECTORS)
    (folder / DECISIONS).write_bytes(_DECISIONS.dump_json(list(decisions), indent=1))
