"""Vectors in 8 bits, a quarter of the memory, and their search, which makes a block of them after the other
32-bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from models.encoder.faiss_index import CosineIndex, checked_queries
from models.releases.manifest import ReleaseError

#: Rows of a block, which stays in the processor's cache while all queries are compared with it: 3 MB of 384
#: dimensions.
BLOCK = 2048
#: Queries that are compared with all rows at once, and rows of a product (see models/__init__.py).
QUERIES, LEAST_ROWS = 64, 4
_TERMS, _SCALES = "terms", "scales"


@dataclass(frozen=True, slots=True)
class PackedVectors:
    """Vectors (rows, dimension) as 8-bit numbers times the scale of their row."""

    numbers: Tensor
    """(rows, dimension), 8-bit"""
    scales: Tensor
    """(rows,), 32-bit"""

    @classmethod
    def pack(cls, vectors: Vectors) -> PackedVectors:
        """Unit vectors (rows, dimension), rounded where they are not packed already; cosines change by about
        0.001.
        """
        if isinstance(vectors, PackedVectors):
            return vectors
        scales = vectors.abs().amax(1).clamp(min=1e-12) / 127
        return cls((vectors / scales.unsqueeze(1)).round().to(torch.int8), scales)

    @classmethod
    def from_tensors(cls, stored: Mapping[str, Tensor]) -> PackedVectors:
        """What `tensors` gave; raises ReleaseError where it is no matrix with a scale for each row, because
        another product could be far larger than both.
        """
        numbers, scales = stored[_TERMS], stored[_SCALES]
        if numbers.ndim != 2 or scales.shape != numbers.shape[:1]:  # noqa: PLR2004
            raise ReleaseError("the packed vectors are not a matrix with a scale for each row")
        # Copied: what is read from a file is a map of it.
        return cls(numbers.clone(), scales.to(torch.float32, copy=True))

    def tensors(self) -> dict[str, Tensor]:
        """As a release stores them."""
        return {_TERMS: self.numbers, _SCALES: self.scales}

    @property
    def shape(self) -> torch.Size:
        return self.numbers.shape

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, rows: slice | Tensor) -> PackedVectors:
        return PackedVectors(self.numbers[rows], self.scales[rows])

    def into(self, out: Tensor) -> Tensor:
        """Writes the vectors into `out` (rows, dimension), 32-bit, and returns it."""
        return out.copy_(self.numbers).mul_(self.scales.unsqueeze(1))

    def unpacked(self) -> Tensor:
        """(rows, dimension), 32-bit."""
        return self.into(torch.empty(self.shape))


Vectors = Tensor | PackedVectors


class PackedIndex:
    """Exact nearest neighbours by cosine among several matrices.

    A block is compared with all queries of a chunk by one matrix product, whose bits do not depend on the
    number of queries (see models/__init__.py).
    """

    def __init__(self, parts: Sequence[Vectors]) -> None:
        """`parts`: (rows, dimension) each, not copied.

        Raises ValueError when they have no row or numbers that are not finite.
        """
        self._parts = [part for part in parts if len(part)]
        self.size = sum(map(len, self._parts))
        lengths = [torch.from_numpy(np.linalg.norm(b.numpy(), axis=1)) for b in self._blocks()]
        scales = [p.scales if isinstance(p, PackedVectors) else torch.ones(len(p)) for p in self._parts]
        if not lengths or not all(bool(torch.isfinite(own).all()) for own in (*lengths, *scales)):
            raise ValueError("an index needs a non-empty matrix of finite numbers")
        self._factors = 1 / torch.cat(lengths).clamp(min=1e-12)

    def search(self, queries: NDArray[np.float32], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """As CosineIndex; the last of equal rows is first."""
        k = min(k, self.size)
        asked = torch.from_numpy(checked_queries(queries))[: len(queries)]
        found = [self._nearest(asked[i : i + QUERIES], k) for i in range(0, len(asked), QUERIES)]
        if not found:
            return np.zeros((0, k), np.float32), np.zeros((0, k), np.int64)
        return np.concatenate([s for s, _ in found]), np.concatenate([r for _, r in found])

    def _nearest(self, asked: Tensor, k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Of a chunk of unit queries (at most QUERIES, dimension)."""
        n = len(asked)
        if n < LEAST_ROWS:
            asked = asked.repeat(LEAST_ROWS, 1)
        cosines, start = torch.empty(len(asked), self.size), 0
        for block in self._blocks():
            cosines[:, start : start + len(block)] = asked @ block.T
            start += len(block)
        best = (cosines * self._factors)[:n].topk(k)
        scores, rows = best.values.numpy(), best.indices.numpy()
        order = np.lexsort((-rows, -scores), axis=1)
        return np.take_along_axis(scores, order, 1), np.take_along_axis(rows, order, 1)

    def _blocks(self) -> Iterator[Tensor]:
        """The rows (at most BLOCK, dimension) in their order, 32-bit, without the scales of packed ones, each
        in the place of the one before.
        """
        buffer = torch.empty((BLOCK, self._parts[0].shape[1])) if self._parts else torch.empty(0)
        for part in self._parts:
            numbers = part.numbers if isinstance(part, PackedVectors) else part
            for start in range(0, len(part), BLOCK):
                rows = numbers[start : start + BLOCK]
                yield buffer[: len(rows)].copy_(rows)


def index_of(parts: Sequence[Vectors], device: str) -> PackedIndex | CosineIndex:
    """The index of all rows, which holds them in 32 bits where it is on a GPU."""
    if device == "cpu":
        return PackedIndex(parts)
    rows = torch.cat([p.unpacked() if isinstance(p, PackedVectors) else p for p in parts])
    return CosineIndex(rows.numpy(), device)
