"""Vectors in 8 bits, a quarter of the memory, and their search, which unpacks one block after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from models.encoder.faiss_index import CosineIndex, checked_queries
from models.normalization import exact_search
from models.normalization.exact_search import BLOCK, Block
from models.releases.manifest import ReleaseError

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

    Where the processor multiplies 8-bit numbers fast, rows of 8 bits are compared as they are; the format
    does not change the results.
    """

    def __init__(self, parts: Sequence[Vectors], dtype: torch.dtype | None = None) -> None:
        """`parts`: (rows, dimension) each, not copied; `dtype`: of the product with rows of 8 bits, by
        default the one that is fast here.

        Raises ValueError when they have no row or numbers that are not finite.
        """
        self._parts = [part for part in parts if len(part)]
        self._starts = list(accumulate(map(len, self._parts), initial=0))
        self.size = self._starts.pop()
        self.dtype = torch.float32
        if all(isinstance(part, PackedVectors) for part in self._parts):
            self.dtype = dtype or (torch.int8 if exact_search.has_exact_8_bit_products() else torch.float32)
        # By NumPy, as a CosineIndex does: torch's have other last bits.
        lengths = [torch.from_numpy(np.linalg.norm(b.numpy(), axis=1)) for b in self._unpacked()]
        if not lengths or not all(bool(torch.isfinite(own).all()) for own in lengths):
            raise ValueError("an index needs a non-empty matrix of finite numbers")
        self._lengths = torch.cat(lengths).clamp(min=1e-12)
        scales = [p.scales if isinstance(p, PackedVectors) else torch.ones(len(p)) for p in self._parts]
        self._factors = torch.cat(scales) / self._lengths

    def search(self, queries: NDArray[np.float32], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """The cosines and rows of the k nearest vectors of each query, as `CosineIndex.search` gives them."""
        asked = checked_queries(queries)[: len(queries)]
        return exact_search.search(asked, min(k, self.size), self)

    def blocks(self, size: int) -> Iterator[Block]:
        buffer = torch.empty((0 if self.dtype == torch.int8 else size, self._parts[0].shape[1]))
        for part, first in zip(self._parts, self._starts, strict=True):
            numbers = part.numbers if isinstance(part, PackedVectors) else part
            for start in range(0, len(part), size):
                rows = numbers[start : start + size]
                factors = self._factors[first + start : first + start + len(rows)]
                yield Block(rows if self.dtype == torch.int8 else buffer[: len(rows)].copy_(rows), factors)

    def exactly(self, rows: Tensor) -> Tensor:
        out = torch.empty((len(rows), self._parts[0].shape[1]))
        for part, first in zip(self._parts, self._starts, strict=True):
            own = (rows >= first) & (rows < first + len(part))
            found = part[rows[own] - first]
            out[own] = found.unpacked() if isinstance(found, PackedVectors) else found.float()
        return out.div_(self._lengths[rows].unsqueeze(1))

    def _unpacked(self) -> Iterator[Tensor]:
        """The rows (at most BLOCK, dimension) in their order, 32-bit, each in the place of the one before."""
        buffer = torch.empty((BLOCK, self._parts[0].shape[1])) if self._parts else torch.empty(0)
        for part in self._parts:
            for start in range(0, len(part), BLOCK):
                rows = part[start : start + BLOCK]
                out = buffer[: len(rows)]
                yield rows.into(out) if isinstance(rows, PackedVectors) else out.copy_(rows)


def index_of(parts: Sequence[Vectors], device: str) -> PackedIndex | CosineIndex:
    """The index of all rows, which holds them in 32 bits where it is on a GPU."""
    if device == "cpu":
        return PackedIndex(parts)
    rows = torch.cat([p.unpacked() if isinstance(p, PackedVectors) else p for p in parts])
    return CosineIndex(rows.numpy(), device)
