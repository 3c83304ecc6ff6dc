"""The index returns the same neighbours as a comparison with every row, in a batch of any size."""

from __future__ import annotations

import faiss
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from models.encoder.faiss_index import CosineIndex


def cosines(queries: NDArray[np.float32], rows: NDArray[np.float32]) -> NDArray[np.float64]:
    q, r = queries.astype(np.float64), rows.astype(np.float64)
    lengths = np.linalg.norm(q, axis=1)[:, None] * np.linalg.norm(r, axis=1)[None, :]
    return np.asarray(np.divide(q @ r.T, lengths, out=np.zeros((len(q), len(r))), where=lengths > 0))


@settings(max_examples=40)
@given(
    st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(1, 24), st.integers(1, 12), st.integers(1, 70)
)
def test_the_nearest_rows_are_those_of_a_full_comparison(
    seed: int, size: int, dimension: int, n_queries: int, k: int
) -> None:
    rng = np.random.default_rng(seed)
    rows = (rng.normal(size=(size, dimension)) * rng.uniform(0.01, 100, (size, 1))).astype(np.float32)
    queries = rng.normal(size=(n_queries, dimension)).astype(np.float32)
    scores, neighbours = CosineIndex(rows).search(queries, k)
    every = cosines(queries, rows)
    assert scores.shape == neighbours.shape == (n_queries, min(k, size))
    assert np.allclose(scores, -np.sort(-every, axis=1)[:, :k], atol=1e-5)
    assert np.allclose(np.take_along_axis(every, neighbours, axis=1), scores, atol=1e-5)
    assert all(len(set(row)) == len(row) for row in neighbours.tolist())


def test_a_zero_row_and_a_zero_query_have_cosine_zero() -> None:
    rows = np.array([[0, 0], [1, 0], [0, -1]], np.float32)
    scores, neighbours = CosineIndex(rows).search(np.array([[2, 2]], np.float32), 3)
    assert neighbours.tolist() == [[1, 0, 2]]
    assert np.allclose(scores, np.array([[0.7071068, 0.0, -0.7071068]]), atol=1e-6)
    scores, neighbours = CosineIndex(rows).search(np.zeros((1, 2), np.float32), 2)
    assert scores.tolist() == [[0.0, 0.0]]
    assert set(neighbours[0].tolist()) < {0, 1, 2}
    scores, neighbours = CosineIndex(rows).search(np.zeros((0, 2), np.float32), 2)
    assert scores.shape == neighbours.shape == (0, 2)


@pytest.mark.parametrize(
    "vectors",
    [
        np.array([[1, np.nan]], np.float32),
        np.array([[1, np.inf]], np.float32),
        np.zeros((0, 4), np.float32),
        np.ones(4, np.float32),
    ],
)
def test_vectors_that_are_not_a_finite_matrix_are_refused(vectors: NDArray[np.float32]) -> None:
    with pytest.raises(ValueError, match="non-empty matrix of finite numbers"):
        CosineIndex(vectors)


def test_the_index_copies_the_callers_array() -> None:
    rows = np.array([[3, 0], [0, 5]], np.float32)
    index = CosineIndex(rows)
    assert rows.tolist() == [[3, 0], [0, 5]]
    rows[:] = 0
    assert index.search(np.array([[0, 1]], np.float32), 1)[1].tolist() == [[1]]


@pytest.mark.parametrize(
    ("device", "gpus", "moved"), [("cuda", 1, True), ("cuda", 0, False), ("cpu", 1, False)]
)
def test_an_index_goes_to_the_gpu_where_faiss_has_one(
    device: str, gpus: int, moved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def to_gpu(resources: object, number: int, index: faiss.Index) -> faiss.Index:
        seen.append((resources, number, index.ntotal))
        return index

    monkeypatch.setattr(faiss, "get_num_gpus", lambda: gpus, raising=False)
    monkeypatch.setattr(faiss, "StandardGpuResources", lambda: "resources", raising=False)
    monkeypatch.setattr(faiss, "index_cpu_to_gpu", to_gpu, raising=False)
    index = CosineIndex(np.eye(3, dtype=np.float32), device)
    # Empty when it is moved: the vectors are added there.
    assert seen == ([("resources", 0, 0)] if moved else [])
    assert index.search(np.eye(3, dtype=np.float32)[:1], 1)[1].tolist() == [[0]]


@pytest.mark.gpu
def test_a_gpu_index_returns_what_a_cpu_index_returns() -> None:
    if not getattr(faiss, "get_num_gpus", int)():
        pytest.skip("no faiss-gpu, or no device")
    rng = np.random.default_rng(11)
    vectors, queries = (rng.standard_normal((n, 32)).astype(np.float32) for n in (500, 40))
    (cosines, rows), (cpu_cosines, cpu_rows) = (
        CosineIndex(vectors, device).search(queries, 5) for device in ("cuda", "cpu")
    )
    np.testing.assert_allclose(cosines, cpu_cosines, atol=1e-5)
    assert (rows == cpu_rows).mean() > 0.99


def test_a_query_has_the_same_neighbours_in_a_batch_of_any_size() -> None:
    rng = np.random.default_rng(12)
    vectors, queries = (rng.standard_normal((n, 64)).astype(np.float32) for n in (3000, 70))
    index = CosineIndex(vectors)
    cosines, rows = index.search(queries, 20)
    for size in (1, 7, 33):
        for start in range(0, 70, size):
            part = slice(start, start + size)
            own_cosines, own_rows = index.search(queries[part], 20)
            assert (own_cosines == cosines[part]).all(), f"in batches of {size}"
            assert (own_rows == rows[part]).all()
