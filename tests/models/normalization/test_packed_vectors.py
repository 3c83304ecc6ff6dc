"""Vectors in 8 bits have nearly the cosines of those in 32, and their index the results of a CosineIndex."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import normalize

from models.encoder.faiss_index import CosineIndex
from models.encoder.model import Encoder
from models.normalization import exact_search, packed_vectors
from models.normalization.exact_search import has_exact_8_bit_products
from models.normalization.model import NormalizationModel
from models.normalization.packed_vectors import PackedIndex, PackedVectors, Vectors
from models.releases.store import open_release

BUNDLED = Path(packed_vectors.__file__).parents[1] / "pretrained" / "normalization"


def rows_of(vectors: Vectors) -> Tensor:
    return vectors.unpacked() if isinstance(vectors, PackedVectors) else vectors


def random(rows: int, seed: int, dimension: int = 32) -> Tensor:
    return torch.randn(rows, dimension, generator=torch.Generator().manual_seed(seed))


def test_packing_changes_the_cosines_of_real_terms_by_less_than_half_a_percent(mini: Encoder) -> None:
    vectors = mini.embed(["insomnia", "nausea", "headache", "weight gain", "suicidal ideation"])
    packed = PackedVectors.pack(vectors)
    assert packed.tensors()["terms"].dtype == torch.int8
    queries = mini.embed(["couldn't sleep", "head is killing me", "nausea"])
    assert (queries @ packed.unpacked().T - queries @ vectors.T).abs().max() < 0.005


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**31), st.integers(1, 20), st.integers(128, 400))
def test_packing_changes_cosines_of_random_vectors_little(seed: int, rows: int, dimension: int) -> None:
    vectors, queries = normalize(random(rows, seed, dimension)), random(5, seed + 1, dimension).numpy()
    before, _ = CosineIndex(vectors.numpy()).search(queries, rows)
    after, _ = PackedIndex([PackedVectors.pack(vectors)]).search(queries, rows)
    assert abs(before - after).max() < 0.005


def test_packed_vectors_are_read_as_they_were_stored_and_zero_stays_zero() -> None:
    assert PackedVectors.pack(torch.zeros(1, 4)).unpacked().tolist() == [[0.0] * 4]
    packed = PackedVectors.pack(random(7, 1))
    again = PackedVectors.from_tensors(packed.tensors())
    assert torch.equal(again.unpacked(), packed.unpacked())
    assert PackedVectors.pack(again) is again
    assert torch.equal(again[torch.tensor([3, 1])].unpacked(), packed.unpacked()[[3, 1]])
    scores, rows = PackedIndex([torch.eye(3)]).search(np.zeros((0, 3), np.float32), 2)
    assert scores.shape == rows.shape == (0, 2)


FORMATS = [
    torch.float32,
    pytest.param(
        torch.int8,
        marks=pytest.mark.skipif(not has_exact_8_bit_products(), reason="a processor without VNNI"),
    ),
]


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("queries", [1, 2, 200])
@pytest.mark.parametrize("k", [1, 2, 20, 10_000])
def test_the_results_are_those_of_an_index_of_all_rows_to_the_bit(
    queries: int, k: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exact_search, "BLOCK", 64)
    # Rows that are there twice have equal cosines; blocks end inside of a part and with it.
    packed = PackedVectors.pack(normalize(random(150, 2)))
    parts: list[Vectors] = [packed, 3 * random(64, 3), packed[:70], torch.zeros(1, 32)]
    if dtype == torch.int8:
        parts = [PackedVectors.pack(part) for part in parts]
    # Some have a few numbers that are far larger than the others, which are then rounded to nothing.
    asked = random(queries, 4).numpy()
    asked[::3] **= 9
    index = PackedIndex(parts, dtype)
    assert index.dtype == dtype
    scores, rows = index.search(asked, k)
    expected, numbers = CosineIndex(torch.cat([rows_of(p) for p in parts]).numpy()).search(asked, k)
    assert np.array_equal(scores, expected)
    assert np.array_equal(rows, numbers)


@pytest.mark.parametrize("dtype", FORMATS)
def test_near_neighbours_are_told_apart_in_either_number_format(dtype: torch.dtype) -> None:
    # Names of a terminology are that near to each other, far nearer than 8 bits can tell.
    centres = normalize(random(40, 7, 384)).repeat_interleave(100, 0)
    packed = PackedVectors.pack(normalize(centres + 0.002 * random(4000, 8, 384)))
    asked = (centres[::250] + 0.01 * random(16, 9, 384)).numpy()
    scores, rows = PackedIndex([packed], dtype).search(asked, 60)
    expected, numbers = CosineIndex(packed.unpacked().numpy()).search(asked, 60)
    assert np.array_equal(scores, expected)
    assert np.array_equal(rows, numbers)


def test_8_bit_products_are_used_only_where_their_sums_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    product = torch._int_mm
    found = has_exact_8_bit_products.__wrapped__  # type: ignore[attr-defined]
    monkeypatch.setattr(torch.cpu, "_is_vnni_supported", lambda: True)
    monkeypatch.setattr(torch, "_int_mm", lambda a, b: product(a, b).clamp(max=2**23))
    assert not found()
    monkeypatch.setattr(torch.cpu, "_is_vnni_supported", lambda: False)
    monkeypatch.setattr(exact_search, "has_exact_8_bit_products", found)
    assert PackedIndex([PackedVectors.pack(random(70, 3))]).dtype == torch.float32


def test_a_query_has_the_same_results_alone_and_among_others() -> None:
    index, queries = PackedIndex([PackedVectors.pack(normalize(random(5000, 5)))]), random(30, 6).numpy()
    scores, rows = index.search(queries, 20)
    for i in range(30):
        own_scores, own_rows = index.search(queries[i : i + 1], 20)
        assert np.array_equal(own_scores[0], scores[i])
        assert np.array_equal(own_rows[0], rows[i])


@pytest.mark.parametrize("parts", [[], [torch.zeros(0, 4)], [torch.tensor([[1.0, float("nan")]])]])
def test_no_rows_and_numbers_that_are_not_finite_are_refused(parts: list[Tensor]) -> None:
    with pytest.raises(ValueError, match="non-empty matrix of finite numbers"):
        PackedIndex(parts)


def test_a_query_that_is_not_finite_is_refused() -> None:
    with pytest.raises(ValueError, match="not finite"):
        PackedIndex([torch.eye(2)]).search(np.array([[1, np.inf]], np.float32), 1)


def test_the_bundled_release_holds_its_vectors_in_8_bits_only() -> None:
    (path,) = (p for p in BUNDLED.iterdir() if p.is_dir())
    model = NormalizationModel.load(open_release(path))
    assert model.phrases is not None
    assert model.taught is not None
    parts = [model._vectors, model.phrases.vectors, model.taught.vectors]
    assert [p.numbers.dtype for p in parts if isinstance(p, PackedVectors)] == [torch.int8] * 3
    index = model._index._index
    assert isinstance(index, PackedIndex)
    assert all(own is part for own, part in zip(index._parts, parts, strict=True))
