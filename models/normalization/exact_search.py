"""Exact nearest neighbours by cosine: a product of matrices prunes the rows of each query, and FAISS's own
cosines of the remaining ones decide.

The bits of a product depend on the number of queries, and in 16 bits it is wrong in the third decimal. So it
only prunes: a row remains if its rounded cosine is not below the k-th best by more than twice the largest
error. The results are therefore those of IndexFlatIP, bit for bit, for a query alone and in a batch;
IndexFlatIP compares query by query, which takes ten times as long.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import faiss
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]
#: Queries in one product.
QUERIES = 128
#: Rows of which only the best one is considered when the k-th best cosine is estimated: the estimate is never
#: too high.
GROUP = 8
#: More than a cosine of unit vectors of up to 2,000 dimensions is wrong in a product: by 2^-24 for each
#: dimension; in 16 bits also by 2^-8 for the query and 2^-8 for the result. Rows must be exact in 16 bits.
ERRORS = {torch.float32: 2e-4, torch.bfloat16: 2**-7 + 2e-4}


class Block(NamedTuple):
    """Consecutive rows in the number format of the product; cosines are the results times `factors`."""

    matrix: Tensor
    """(rows, dimension)"""
    factors: Tensor
    """(rows,)"""


class Rows(Protocol):
    """The unit vectors that are searched."""

    size: int
    dtype: torch.dtype
    """Number format of the product."""

    def blocks(self) -> Iterator[Block]:
        """All rows in their order; a block may reuse the memory of the previous one."""

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


def _candidate_rows(queries: Floats, k: int, rows: Rows) -> Tensor:
    """(queries, maximum number of remaining rows) row numbers in their order, padded with `rows.size`."""
    asked = torch.from_numpy(queries).to(rows.dtype)
    margin = 2 * ERRORS[rows.dtype]
    best = torch.full((len(queries), k), -torch.inf)
    found, start = [], 0
    for matrix, factors in rows.blocks():
        cosines = (asked @ matrix.T) * factors
        best = torch.cat([best, _highest(cosines)], 1).topk(k, 1, sorted=False).values
        kept = (cosines >= best.amin(1, keepdim=True) - margin).nonzero()
        found.append((kept[:, 0], kept[:, 1] + start, cosines[kept[:, 0], kept[:, 1]]))
        start += len(matrix)
    asking, numbers, scores = (torch.cat(parts) for parts in zip(*found, strict=True))
    # In earlier blocks the k-th best was lower.
    is_left = scores >= best.amin(1)[asking] - margin
    asking, numbers = asking[is_left], numbers[is_left]
    order = asking.argsort(stable=True)
    asking, numbers = asking[order], numbers[order]
    counts = asking.bincount(minlength=len(queries))
    left = torch.full((len(queries), int(counts.max())), rows.size)
    left[asking, torch.arange(len(asking)) - (counts.cumsum(0) - counts)[asking]] = numbers
    return left


def _highest(cosines: Tensor) -> Tensor:
    """The highest cosine of each GROUP of columns, and those of the remaining columns."""
    whole = cosines.shape[1] - cosines.shape[1] % GROUP
    groups = cosines[:, :whole].view(len(cosines), GROUP, -1).amax(1) if whole else cosines[:, :0]
    return torch.cat([groups, cosines[:, whole:]], 1)


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
