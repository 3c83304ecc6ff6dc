"""Comparisons for batch invariance: the same decisions, scores equal to 1e-4, and the same bits where the
processor allows it.

Whether it does is tested once on import: with MKL's strict mode a row of a matrix product has the same bits
in a product of any size on Intel, but not in products of one to three rows on AMD.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from models.loading import as_json, same_answers

#: Absolute tolerance of scores, which are rounded to four decimals.
TOLERANCE = 1.01e-4
#: Absolute tolerance of the elements of a vector.
VECTOR_TOLERANCE = 1e-5


def _rows_keep_their_bits() -> bool:
    """Whether each row of a product has the same bits when it is computed with fewer other rows."""
    generator = torch.Generator().manual_seed(1)
    for dimension in (16, 32, 384):
        rows = torch.randn(64, dimension, generator=generator)
        weight = torch.randn(dimension, dimension, generator=generator)
        expected = rows @ weight.T
        for start, size in ((0, 1), (3, 2), (5, 3), (9, 5), (17, 8), (33, 31)):
            if not torch.equal(rows[start : start + size] @ weight.T, expected[start : start + size]):
                return False
    return True


SAME_BITS = _rows_keep_their_bits()


def same_vectors(actual: Tensor, expected: Tensor) -> bool:
    """Whether two tensors of one shape are equal: in all bits where `SAME_BITS`, else to 1e-5."""
    if SAME_BITS:
        return torch.equal(actual, expected)
    return actual.shape == expected.shape and torch.allclose(actual, expected, rtol=0, atol=VECTOR_TOLERANCE)


def same_records(actual: Any, expected: Any) -> bool:
    """Whether outputs of a model are equal: floating-point numbers to 1e-4, exactly where `SAME_BITS`, and
    all else exactly.
    """
    return same_answers(as_json(actual), as_json(expected), 0.0 if SAME_BITS else TOLERANCE)
