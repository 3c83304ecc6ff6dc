"""Exact nearest neighbours by cosine in FAISS, on a GPU where faiss-gpu and a device are there."""

from __future__ import annotations

from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

# FAISS sends 20 queries or more to a matrix product whose last bits depend on how many they are. Below this
# threshold it compares query by query: a repeated record finds the same neighbours in the same order.
faiss.cvar.distance_compute_blas_threshold = 1 << 30


class CosineIndex:
    """A flat inner-product index over unit vectors; a terminology of 80,000 terms needs no approximation."""

    def __init__(self, vectors: NDArray[np.float32], device: str = "cpu") -> None:
        """`vectors`: (n, dimension), normalised here. Raises ValueError on numbers that are not finite."""
        if vectors.ndim != 2 or not len(vectors) or not np.isfinite(vectors).all():  # noqa: PLR2004
            raise ValueError("an index wants a non-empty matrix of finite numbers")
        self.size = len(vectors)
        index: Any = faiss.IndexFlatIP(vectors.shape[1])
        if device != "cpu" and getattr(faiss, "get_num_gpus", int)() > 0:
            # The resources must live as long as the index does.
            self._resources = faiss.StandardGpuResources()
            index = faiss.index_cpu_to_gpu(self._resources, 0, index)
        index.add(unit(vectors))
        self._index = index

    def search(self, queries: NDArray[np.float32], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Cosines and row numbers, each (queries, k), nearest first; k is cut to the size of the index.

        Raises ValueError on numbers that are not finite: FAISS would answer with rows that do not exist.
        """
        k = min(k, self.size)
        if not np.isfinite(queries).all():
            raise ValueError("a query holds a number that is not finite")
        if not len(queries):
            return np.zeros((0, k), np.float32), np.zeros((0, k), np.int64)
        wanted = unit(queries)
        if len(wanted) == 1:
            # A single query is split over the threads, which again moves the last bits: it gets company.
            wanted = np.repeat(wanted, 2, axis=0)
        scores, rows = self._index.search(wanted, k)
        return scores[: len(queries)], rows[: len(queries)]


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows scaled to length 1; a zero row stays zero and is near to nothing."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.ascontiguousarray(vectors / np.maximum(lengths, 1e-12), dtype=np.float32)
