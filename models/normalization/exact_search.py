"""Exact nearest neighbours by cosine: a product of matrices prunes the rows of each query, and FAISS's own
cosines of the remaining ones decide.

The bits of a product depend on the number of queries, and in 8 bits it is wrong in the third decimal. So it
only prunes: a row remains if its rounded cosine is not below the k-th best by more than twice the largest
error. The results are therefore those of IndexFlatIP, bit for bit, for a query alone and in a batch;
IndexFlatIP compares query by query, which takes ten times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import faiss
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from models.once import once

Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]
#: Queries in one product.
QUERIES = 128
#: Rows of a block, 1.5 MB of 384 dimensions in 32 bits; in 8 bits more of them where there are fewer queries.
#: Larger ones do not stay in the processor's cache.
BLOCK = 1024
#: Rows of which only the best one is considered when the k-th best cosine is estimated: the estimate is never
#: too high.
GROUP = 16
#: Below every cosine, and above those that fill up a group.
LOWEST = np.finfo(np.float32).min
#: More than a cosine of unit vectors of up to 2,000 dimensions is wrong in 32 bits: by 2^-24 for each
#: dimension.
ERROR = 2e-4
#: Queries by whose number 8-bit products are padded: oneDNN keeps a kernel for each number.
PAD_TO = 16
#: The largest 8-bit number that is used; -128 has no positive.
LARGEST = 127


class Block(NamedTuple):
    """Consecutive rows in the number format of the product; its results times `factors` are cosines."""

    matrix: Tensor
    """(rows, dimension)"""
    factors: Tensor
    """(rows,)"""


class Rows(Protocol):
    """The unit vectors that are searched."""

    size: int
    dtype: torch.dtype
    """Number format of the product: 32-bit, or 8-bit where the rows are exact in it."""

    def blocks(self, size: int) -> Iterator[Block]:
        """All rows in their order, at most `size` a block, which may reuse the memory of the previous one."""

    def exactly(self, rows: Tensor) -> Tensor:
        """(rows, dimension), 32-bit, of the rows with these numbers."""


def search(queries: Floats, k: int, rows: Rows) -> tuple[Floats, Numbers]:
    """Cosines and row numbers of unit vectors (queries, dimension), each (queries, k), in FAISS's order; k is
    at most the number of rows.
    """
    found = [_search(queries[i : i + QUERIES], k, rows) for i in range(0, len(queries), QUERIES)]
    if not found:
        return np.zeros((0, k), np.float32), np.zeros((0, k), np.int64)
    scores, numbers = zip(*found, strict=True)
    return np.concatenate(scores), np.concatenate(numbers)


def _search(queries: Floats, k: int, rows: Rows) -> tuple[Floats, Numbers]:
    left = _candidate_rows(queries, k, rows)
    own = torch.unique(left[left < rows.size])
    places = torch.searchsorted(own, left)
    places[left == rows.size] = -1
    scores = _cosines(queries, rows.exactly(own).numpy(), places.numpy())
    return nearest(scores, left.numpy(), k)


@once
def has_exact_8_bit_products() -> bool:
    """Whether the processor multiplies 8-bit numbers fast and sums them exactly, as those with VNNI do; with
    AVX2 alone oneDNN's sums are cut off.
    """
    if not torch.cpu._is_vnni_supported():
        return False
    largest = torch.full((PAD_TO, BLOCK), LARGEST, dtype=torch.int8)
    return bool((torch._int_mm(largest, largest.T) == LARGEST**2 * BLOCK).all())


def _candidate_rows(queries: Floats, k: int, rows: Rows) -> Tensor:
    """(queries, maximum number of remaining rows) row numbers in their order, padded with `rows.size`."""
    asked, errors, size = torch.from_numpy(queries), np.full(len(queries), ERROR, np.float32), BLOCK
    multiplied: Callable[..., Tensor] = torch.mm
    if rows.dtype == torch.int8:
        asked, errors = _in_8_bits(queries)
        multiplied, size = torch._int_mm, BLOCK * QUERIES // len(asked)
    products = torch.empty((size, len(asked)), dtype=torch.int32 if rows.dtype == torch.int8 else rows.dtype)
    remaining = _Remaining(k, 2 * errors, size)
    for matrix, factors in rows.blocks(size):
        results = multiplied(matrix, asked.T, out=products[: len(matrix)])
        remaining.add(results[:, : len(queries)], factors)
    asking, numbers = map(torch.from_numpy, remaining.found())
    counts = asking.bincount(minlength=len(queries))
    left = torch.full((len(queries), int(counts.max())), rows.size)
    left[asking, torch.arange(len(asking)) - (counts.cumsum(0) - counts)[asking]] = numbers
    return left


def _in_8_bits(queries: Floats) -> tuple[Tensor, Floats]:
    """The queries in 8 bits with a scale for each, padded by zeros; and the errors of their products with
    unit vectors, at most the length of what was rounded off (Cauchy-Schwarz), in units of that scale.
    """
    scales = np.maximum(np.abs(queries).max(1), 1e-12) / LARGEST
    numbers = np.rint(queries / scales[:, None])
    errors = np.linalg.norm(queries - numbers * scales[:, None], axis=1) + ERROR
    asked = torch.zeros((len(queries) + -len(queries) % PAD_TO, queries.shape[1]), dtype=torch.int8)
    asked[: len(queries)] = torch.from_numpy(numbers)
    return asked, errors / scales


class _Remaining:
    """The rows of each query whose cosines are not below the k-th best so far by more than its margin."""

    def __init__(self, k: int, margins: Floats, size: int) -> None:
        """`size`: at least the number of rows that are added at once."""
        queries = len(margins)
        self._margins = margins
        self._best = torch.full((k, queries), -torch.inf)
        self._least = np.full(queries, LOWEST)
        # Allocated once: new memory for each block costs as much as what is computed in it.
        self._cosines = torch.empty((size + -size % GROUP, queries))
        self._waiting: list[Tensor] = []
        self._found: list[tuple[Numbers, Numbers, Floats]] = []
        self._blocks = self._rows = 0

    def add(self, products: Tensor, factors: Tensor) -> None:
        """Adds the next rows: (rows, queries), times the factors of the rows."""
        size, n_groups = len(products), -(-len(products) // GROUP)
        cosines = self._cosines[: n_groups * GROUP]
        torch.mul(products, factors.unsqueeze(1), out=cosines[:size])
        if size < len(cosines):
            cosines[size:] = -torch.inf
        groups = cosines.view(GROUP, n_groups, -1)
        highest = groups.amax(0)
        self._waiting.append(highest)
        self._blocks += 1
        # Whenever the number of blocks has doubled: of the rows between, most are far below.
        if self._blocks & (self._blocks - 1) == 0:
            self._estimate()
        group, asking = np.divmod(np.flatnonzero(highest.numpy() >= self._least), highest.shape[1])
        members = groups.numpy()[:, group, asking]
        member, place = (members >= self._least[asking]).nonzero()
        numbers = self._rows + member * n_groups + group[place]
        self._found.append((asking[place], numbers, members[member, place]))
        self._rows += size

    def found(self) -> tuple[Numbers, Numbers]:
        """The numbers of the queries and of their rows, both ascending."""
        self._estimate()
        asking, numbers, cosines = (np.concatenate(parts) for parts in zip(*self._found, strict=True))
        # In earlier blocks the k-th best was lower.
        is_left = cosines >= self._least[asking]
        asking, numbers = asking[is_left], numbers[is_left]
        order = np.lexsort((numbers, asking))
        return asking[order], numbers[order]

    def _estimate(self) -> None:
        k = len(self._best)
        self._best = torch.cat([self._best, *self._waiting]).topk(k, 0, sorted=False).values
        self._waiting.clear()
        self._least = np.maximum(self._best.amin(0).numpy() - self._margins, LOWEST)


def _cosines(queries: Floats, rows: Floats, places: Numbers) -> Floats:
    """(queries, places): FAISS's inner products with the rows at these places; lowest at a place of -1."""
    out = np.empty(places.shape, np.float32)
    arrays = (out, *map(np.ascontiguousarray, (queries, rows, places)))
    product: Any = faiss
    product.fvec_inner_products_by_idx(*map(faiss.swig_ptr, arrays), queries.shape[1], *places.shape)
    out[places < 0] = -np.inf
    return out


def nearest(scores: Floats, rows: Numbers, k: int) -> tuple[Floats, Numbers]:
    """The `k` best of each query's rows, (queries, rows) in ascending order, as FAISS chooses and sorts them:
    of equal rows the last is first. FAISS reads rows one after the other: when it has k, it adds no row that
    equals the k-th, and replaces the first of equal rows by a better one.
    """
    least = np.partition(scores, -k, axis=1)[:, -k:].min(1, keepdims=True)
    is_added = (scores > least) | ((scores == least) & ((scores >= least).cumsum(1) <= k))
    order = np.lexsort((-rows, np.where(is_added, -scores, np.inf)), axis=1)[:, :k]
    return np.take_along_axis(scores, order, 1), np.take_along_axis(rows, order, 1)
