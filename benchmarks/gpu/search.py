"""Exact neighbour searches on the GPU and on the processor."""

from __future__ import annotations

from functools import partial
from typing import Any

import faiss
import numpy as np

from benchmarks.speed.timing import by_turns
from models.encoder.faiss_index import CosineIndex

DIMENSION, NEIGHBOURS = 384, 20
#: Queries of one search: two sizes of batches.
QUERIES = (64, 256)


def search(sizes: tuple[int, ...], repeats: int, devices: tuple[str, ...]) -> dict[str, Any]:
    """Searches in random unit vectors. `same_neighbours` is the share of queries with the same neighbours in
    the same order as on the processor, `cosines_differ_by` the largest difference of a cosine.
    """
    rng = np.random.default_rng(7)
    rows = {}
    for size in sizes:
        vectors = rng.standard_normal((size, DIMENSION), dtype=np.float32)
        indexes = {device: CosineIndex(vectors, device) for device in devices}
        del vectors
        for n in QUERIES:
            queries = rng.standard_normal((n, DIMENSION), dtype=np.float32)
            forms = {device: partial(index.search, queries, NEIGHBOURS) for device, index in indexes.items()}
            times = by_turns(forms, repeats)
            cosines, found = forms[devices[0]]()
            for device in devices:
                own_cosines, own = forms[device]()
                rows[f"{size:,} vectors, {n:,} queries, {device}"] = {
                    "searches_per_second": round(n / times[device].wall, 1),
                    "times_as_fast": round(times[devices[0]].wall / times[device].wall, 2),
                    "same_neighbours": round(float((own == found).all(1).mean()), 4),
                    "cosines_differ_by": float(f"{np.abs(own_cosines - cosines).max():.1e}"),
                }
    return {
        "what": f"{NEIGHBOURS} nearest of random vectors of dimension {DIMENSION}, FAISS flat index",
        "faiss": faiss.__version__,
        "rows": rows,
    }
