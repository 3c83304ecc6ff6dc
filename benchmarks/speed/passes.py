"""The forward passes of the packed encoder: recorded while a model works, counted, and repeated alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from models.encoder.packed.bert import ROWS, PackedBert


@dataclass(frozen=True, slots=True)
class Pass:
    """The inputs of one pass through the layers of a model."""

    model: PackedBert
    rows: Tensor
    """(pieces, dimension): hidden states below the first layer"""
    lengths: Sequence[int]
    runs: Sequence[list[int]]
    split: int

    @property
    def pieces(self) -> int:
        return len(self.rows)

    @property
    def padding(self) -> int:
        """Number of padding rows."""
        return -len(self.rows) % ROWS

    @property
    def operations(self) -> float:
        """Floating-point operations of the products of all layers, without padding: twice the parameters of
        the linear layers for each piece, and two products of a sequence's pieces with each other.
        """
        weights = sum(
            w.numel()
            for layer in self.model.layers
            for part in (layer.query_key_value, layer.attended, layer.inner, layer.outer)
            for w in part.weights
        )
        squares = sum(len(run) * n * n for run, n in zip(self.runs, self.lengths, strict=True))
        dimension = self.model.config.hidden_size
        return 2.0 * weights * self.pieces + 4.0 * squares * dimension * len(self.model.layers)

    def again(self) -> None:
        with torch.inference_mode():
            for _ in self.model._groups(self.rows, self.lengths, self.runs, self.split):
                pass


@contextmanager
def noted() -> Iterator[list[Pass]]:
    """The passes of all packed models during the block."""
    found: list[Pass] = []
    groups = PackedBert._groups

    def noting(self: PackedBert, *inputs: Any) -> Any:
        found.append(Pass(self, *inputs))
        return groups(self, *inputs)

    with patch.object(PackedBert, "_groups", noting):
        yield found
