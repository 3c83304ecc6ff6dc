"""A supplement of a release: pairs that reviewers decided, which decide pairs that are nearly the same.

It is a small release without a network. Its manifest names the release that it extends; its files hold the
pairs' vectors in the relation space, whether each is related, and the decision behind each. No words of a
report are in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from pydantic import TypeAdapter, ValidationError
from safetensors.torch import save_file

from models.encoder.faiss_index import CosineIndex
from models.relation.support_set import Floats
from models.releases.manifest import Release, ReleaseError
from models.releases.tensors import read_tensors
from models.types import Neighbour

VECTORS, DECISIONS = "decided.safetensors", "decided.json"
#: Key of the configuration: the least cosine of a pair to a decided one that decides it.
LEAST_COSINE = "least_cosine"
#: A pair has a cosine a little below 1 with itself in another number format.
ROUNDING = 0.0001


@dataclass(frozen=True, slots=True)
class Decision:
    """A reviewer's decision on a pair; the names are those of tables, not of the report."""

    report: str
    """id"""
    sequence: int
    """of the decision on the topic `reviews`"""
    reviewer: str
    related: bool
    drug: str = ""
    effect: str = ""


_DECISIONS = TypeAdapter(list[Decision])


class DecidedPairs:
    """The pairs of a supplement."""

    def __init__(self, pairs: Floats, decisions: Sequence[Decision], least_cosine: float) -> None:
        """`pairs`: (decisions, 2 * dimension of the relation space)."""
        self._index = CosineIndex(pairs)
        self._decisions = decisions
        self._least_cosine = least_cosine

    @classmethod
    def load(cls, release: Release, dimension: int) -> DecidedPairs:
        """`dimension` is that of a pair. Raises ReleaseError when files or setting do not fit it or each
        other.
        """
        try:
            decisions = _DECISIONS.validate_json(release.file(DECISIONS).read_bytes(), strict=True)
        except ValidationError as error:
            raise ReleaseError(f"{release.version}: {DECISIONS}: {error.errors()[0]['msg']}") from None
        pairs = read_tensors(release.file(VECTORS))["pairs"]
        least = release.manifest.configuration[LEAST_COSINE]
        if pairs.shape != (len(decisions), dimension) or not 0 < least <= 1:
            raise ReleaseError(f"{release.version}: the decided pairs do not fit the release or each other")
        return cls(pairs.float().numpy(), decisions, least)

    def deciding(self, pairs: Floats, nearest: Floats) -> list[Neighbour | None]:
        """For each pair, (pairs, dimension), the nearest decided one; None where that is not near enough, or
        less near than the nearest training pair, whose cosines are `nearest`, (pairs,).
        """
        cosines, rows = self._index.search(pairs, 1)
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


def write(folder: Path, pairs: Sequence[Floats], decisions: Sequence[Decision]) -> None:
    """Writes the files of a supplement; equal arguments give equal bytes."""
    save_file({"pairs": torch.from_numpy(np.stack(pairs)).half()}, folder / VECTORS)
    (folder / DECISIONS).write_bytes(_DECISIONS.dump_json(list(decisions), indent=1))
