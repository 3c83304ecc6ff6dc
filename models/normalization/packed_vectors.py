"""Vectors in 8 bits, a quarter of the memory, and their search, which makes a block of them after the other
32-bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import faiss
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from models.encoder.faiss_index import CosineIndex, checked_queries
from models.releases.manifest import ReleaseError

#: Rows of a block, which stays in the processor's cache while all queries are compared with it: 3 MB of 384
#: dimensions.
BLOCK = 2048
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
    """Exact nearest neighbours by cosine among several matrices, with the results of a CosineIndex of all
    their rows.

    To make a block 32-bit takes as long as to compare it with two queries; from four queries on the search is
    faster than that of 32-bit rows, which do not stay in the cache.
    """

    def __init__(self, parts: Sequence[Vectors]) -> None:
        """`parts`: (rows, dimension) each, not copied.

        Raises ValueError when they have no row or numbers that are not finite.
        """
        self._parts = [part for part in parts if len(part)]
        self.size = sum(map(len, self._parts))
        lengths = [torch.from_numpy(np.linalg.norm(b.numpy(), axis=1)) for b in self._blocks()]
        if not lengths or not all(bool(torch.isfinite(own).all()) for own in lengths):
            raise ValueError("an index needs a non-empty matrix of finite numbers")
        self._lengths = torch.cat(lengths).clamp(min=1e-12).unsqueeze(1)

    def search(self, queries: NDArray[np.float32], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """As CosineIndex."""
        k = min(k, self.size)
        asked = checked_queries(queries)
        if not len(queries):
            return np.zeros((0, k), np.float32), np.zeros((0, k), np.int64)
        scores, rows, start = [], [], 0
        for block in self._blocks():
            block.div_(self._lengths[start : start + len(block)])
            own_scores, own_rows = faiss.knn(
                asked, block.numpy(), min(k, len(block)), faiss.METRIC_INNER_PRODUCT
            )
            scores.append(own_scores[: len(queries)])
            rows.append(own_rows[: len(queries)] + start)
            start += len(block)
        return _nearest(np.concatenate(scores, 1), np.concatenate(rows, 1), k)

    def _blocks(self) -> Iterator[Tensor]:
        """The rows (at most BLOCK, dimension) in their order, 32-bit, each in the place of the one before."""
        buffer = torch.empty((BLOCK, self._parts[0].shape[1])) if self._parts else torch.empty(0)
        for part in self._parts:
            for start in range(0, len(part), BLOCK):
                rows = part[start : start + BLOCK]
                out = buffer[: len(rows)]
                yield rows.into(out) if isinstance(rows, PackedVectors) else out.copy_(rows)


def _nearest(
    scores: NDArray[np.float32], rows: NDArray[np.int64], k: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The `k` best of each query's rows, (queries, rows), in the order of FAISS, in which the last of equal
    rows is first, and with its choice of those that equal the k-th: it reads the rows one after the other,
    adds no equal one when it has k, and gives up the first for a better one.
    """
    in_turn = np.argsort(rows, axis=1)
    scores, rows = np.take_along_axis(scores, in_turn, 1), np.take_along_axis(rows, in_turn, 1)
    least = np.partition(scores, -k, axis=1)[:, -k:].min(1, keepdims=True)
    is_added = (scores > least) | ((scores == least) & ((scores >= least).cumsum(1) <= k))
    order = np.lexsort((-rows, np.where(is_added, -scores, np.inf)), axis=1)[:, :k]
    return np.take_along_axis(scores, order, 1), np.take_along_axis(rows, order, 1)


def index_of(parts: Sequence[Vectors], device: str) -> PackedIndex | CosineIndex:
    """The index of all rows, which holds them in 32 bits where it is on a GPU."""
    if device == "cpu":
        return PackedIndex(parts)
    rows = torch.cat([p.unpacked() if isinstance(p, PackedVectors) else p for p in parts])
    return CosineIndex(rows.numpy(), device)
