"""Exact nearest neighbours by cosine in FAISS, on a GPU where faiss-gpu and a device are available."""

from __future__ import annotations

from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

# For 20 queries or more FAISS uses a matrix product, whose last bits depend on the number of queries. Below
# this threshold it compares query by query: a repeated record has the same neighbours in the same order.
faiss.cvar.distance_compute_blas_threshold = 1 << 30


class CosineIndex:
    """A flat inner-product index over unit vectors; even 80,000 terms need no approximate search."""

    def __init__(self, vectors: NDArray[np.float32], device: str = "cpu") -> None:
        """`vectors`: (n, dimension), copied and scaled to length 1.

        Raises ValueError when they are empty, no matrix or not finite.
        """
        if vectors.ndim != 2 or not len(vectors) or not np.isfinite(vectors).all():  # noqa: PLR2004
            raise ValueError("an index needs a non-empty matrix of finite numbers")
        self.size = len(vectors)
        index: Any = faiss.IndexFlatIP(vectors.shape[1])
        if device != "cpu" and getattr(faiss, "get_num_gpus", int)() > 0:
            # The resources must exist as long as the index does.
            self._resources = faiss.StandardGpuResources()
            index = faiss.index_cpu_to_gpu(self._resources, 0, index)
        index.add(unit(vectors))
        self._index = index

    def search(self, queries: NDArray[np.float32], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Cosines and row numbers, each (queries, k), nearest first; k is at most the size of the index.

        Raises ValueError on numbers that are not finite: FAISS would return rows that do not exist.
        """
        k = min(k, self.size)
        asked = checked_queries(queries)
        if not len(queries):
            return np.zeros((0, k), np.float32), np.zeros((0, k), np.int64)
        scores, rows = self._index.search(asked, k)
        return scores[: len(queries)], rows[: len(queries)]


def checked_queries(queries: NDArray[np.float32]) -> NDArray[np.float32]:
    """The queries scaled to length 1, a single one twice: FAISS splits it over the threads, which changes the
    last bits. Raises ValueError on numbers that are not finite.
    """
    if not np.isfinite(queries).all():
        raise ValueError("a query holds a number that is not finite")
    return unit(np.repeat(queries, 2, axis=0) if len(queries) == 1 else queries)


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows (n, dimension) scaled to length 1; a zero row stays zero and has cosine 0 with every vector."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.ascontiguousarray(vectors / np.maximum(lengths, 1e-12), dtype=np.float32)
