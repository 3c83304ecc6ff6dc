"""A BERT or MPNet whose batch is one row of pieces without padding, for inference.

Sequences are sorted by length and laid one behind the other. Linear layers see all pieces as the rows of one
matrix; attention runs over the sequences of each length together, so that it needs no mask. Query, key and
value are one product. The hidden states are those of transformers' models, to 1e-5 in 32 bits. In 16 bits
only the inputs of products are rounded: what passes from layer to layer keeps 32.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from models.encoder.number_formats import blocked_linear

#: Pieces in one forward pass: what a layer computes of them fits the processor's cache.
PIECES = 1024
#: The number of rows of a product is a multiple of this: a product of few rows has other last bits.
ROWS = 16
#: Pieces between two positions from which on their attention has one bias (MPNet).
FAR = 128


@dataclass(frozen=True, slots=True)
class BertConfig:
    """Kind and sizes of a model, under the names of its config.json."""

    model_type: str
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    layer_norm_eps: float


class Norm(NamedTuple):
    """Weight and bias of a layer normalization, (dimension,) each."""

    weight: Tensor
    bias: Tensor


class Linear(NamedTuple):
    """Weights (out, in) of a linear layer, or those of each block of its inputs, and its bias (out,)."""

    weights: tuple[Tensor, ...]
    bias: Tensor

    def __call__(self, inputs: Tensor) -> Tensor:
        """(rows, in) to (rows, out); in 32 bits where there are several blocks."""
        inputs = inputs.to(self.bias.dtype)
        if len(self.weights) == 1:
            return functional.linear(inputs, self.weights[0], self.bias)
        return blocked_linear(inputs, self.weights, self.bias)


@dataclass(frozen=True, slots=True)
class Embeddings:
    """Tables (entries, dimension) in 32 bits, and the normalization of their sum."""

    words: Tensor
    positions: Tensor
    """with the vector of token type 0 added, where there are token types"""
    norm: Norm
    distances: Tensor | None = None
    """MPNet's (buckets, heads): what is added to the attention of a piece to one at a distance"""


@dataclass(frozen=True, slots=True)
class Layer:
    """One transformer layer; its products are in their number format, its normalizations in 32 bits."""

    query_key_value: Linear
    attended: Linear
    attended_norm: Norm
    inner: Linear
    outer: Linear
    outer_norm: Norm


#: How many sequences, their length, and the bias of their attention.
Block = tuple[int, int, Tensor | None]


class PackedBert:
    """The layers of a BERT over shared embeddings; nothing in it changes, so threads may share it."""

    def __init__(
        self, config: BertConfig, embeddings: Embeddings, layers: Sequence[Layer], added: Tensor | None = None
    ) -> None:
        """`added`: (tokens, dimension), embeddings of the tokens that follow the vocabulary."""
        self.config = config
        self.embeddings = embeddings
        self.layers = list(layers)
        self.added = added

    @property
    def device(self) -> torch.device:
        return self.embeddings.words.device

    @property
    def dtype(self) -> torch.dtype:
        """The number format of the products."""
        return self.layers[0].inner.bias.dtype

    @property
    def vocabulary_size(self) -> int:
        """Number of the first added token."""
        return len(self.embeddings.words)

    def with_added(self, rows: Tensor) -> PackedBert:
        """The same weights with embeddings `rows` (tokens, dimension) for the tokens after the vocabulary."""
        return PackedBert(self.config, self.embeddings, self.layers, rows.to(self.embeddings.words))

    def with_layers(self, layers: Sequence[Layer]) -> PackedBert:
        """The same embeddings under other layers of this size."""
        return PackedBert(self.config, self.embeddings, layers, self.added)

    def run(self, sequences: Sequence[Sequence[int]]) -> Iterator[tuple[list[int], Tensor]]:
        """Positions of sequences of one length and their hidden states of the last layer (sequences, pieces,
        dimension), 32-bit, until all had their turn.
        """
        for runs in _passes([len(s) for s in sequences]):
            members = [i for run in runs for i in run]
            lengths = [len(sequences[run[0]]) for run in runs]
            blocks = [(len(run), n, self._bias(n)) for run, n in zip(runs, lengths, strict=True)]
            ids = torch.tensor([t for i in members for t in sequences[i]])
            positions = torch.cat([torch.arange(len(sequences[i])) for i in members])
            rows = self._embedded(ids, positions)
            hidden = functional.pad(rows, (0, 0, 0, -len(rows) % ROWS))
            for layer in self.layers:
                hidden = self._layer(layer, hidden, blocks)
            start = 0
            for run, (n, length, _) in zip(runs, blocks, strict=True):
                yield run, hidden[start : start + n * length].view(n, length, -1)
                start += n * length

    def _embedded(self, ids: Tensor, positions: Tensor) -> Tensor:
        """(pieces, dimension)."""
        own, ids, positions = self.embeddings, _copied(ids, self.device), _copied(positions, self.device)
        words = functional.embedding(ids.clamp(max=self.vocabulary_size - 1), own.words)
        if self.added is not None:
            is_added = ids >= self.vocabulary_size
            words[is_added] = self.added[ids[is_added] - self.vocabulary_size]
        words += functional.embedding(positions, own.positions)
        return functional.layer_norm(words, words.shape[1:], *own.norm, self.config.layer_norm_eps)

    def _bias(self, length: int) -> Tensor | None:
        """(heads, length, length), 32-bit: what is added to attention in sequences of a length."""
        distances = self.embeddings.distances
        return None if distances is None else _relative_bias(distances, length)

    def _layer(self, layer: Layer, hidden: Tensor, blocks: Sequence[Block]) -> Tensor:
        """(pieces, dimension) to (pieces, dimension)."""
        shape, eps = hidden.shape[1:], self.config.layer_norm_eps
        attended = self._attended(layer.query_key_value(hidden).to(self.dtype), blocks)
        hidden = hidden + layer.attended(attended)
        hidden = functional.layer_norm(hidden, shape, *layer.attended_norm, eps)
        hidden = hidden + layer.outer(functional.gelu(layer.inner(hidden)))
        return functional.layer_norm(hidden, shape, *layer.outer_norm, eps)

    def _attended(self, query_key_value: Tensor, blocks: Sequence[Block]) -> Tensor:
        """(pieces, dimension) from query, key and value beside each other, (pieces, 3 dimension)."""
        heads, dimension = self.config.num_attention_heads, self.config.hidden_size
        attended = query_key_value.new_zeros(len(query_key_value), dimension)
        start = 0
        for n, length, bias in blocks:
            end = start + n * length
            parts = query_key_value[start:end].view(n, length, 3, heads, -1).permute(2, 0, 3, 1, 4)
            query, key, value = parts
            out = functional.scaled_dot_product_attention(query, key, value, attn_mask=bias)
            attended[start:end] = out.transpose(1, 2).reshape(-1, dimension)
            start = end
        return attended


def _relative_bias(table: Tensor, length: int) -> Tensor:
    """(heads, length, length) from the biases of each bucket of distances, (buckets, heads): half of the
    buckets for pieces behind, half for those before; of each half the first half has a distance each, the
    others grow by the logarithm up to FAR (T5, Raffel et al. 2020, section 2.1).
    """
    places = torch.arange(length, device=table.device)
    ahead = places[None, :] - places[:, None]
    half = len(table) // 2
    exact = half // 2
    far = ahead.abs().clamp(min=1).float()
    grown = exact + (torch.log(far / exact) / math.log(FAR / exact) * (half - exact)).long()
    buckets = torch.where(ahead.abs() < exact, ahead.abs(), grown.clamp(max=half - 1)) + half * (ahead > 0)
    return table[buckets].permute(2, 0, 1).contiguous()


def _copied(values: Tensor, device: torch.device) -> Tensor:
    """The values on the device; to a GPU from pinned memory, so that the thread does not wait for it."""
    if device.type != "cuda" or values.device.type != "cpu":
        return values.to(device)
    return values.pin_memory().to(device, non_blocking=True)


def _passes(lengths: Sequence[int]) -> Iterator[list[list[int]]]:
    """Forward passes of about PIECES pieces: the positions of the sequences, those of one length together."""
    runs: list[list[int]] = []
    pieces = 0
    for i in sorted(range(len(lengths)), key=lengths.__getitem__):
        if runs and pieces + lengths[i] > PIECES:
            yield runs
            runs, pieces = [], 0
        if runs and lengths[runs[-1][0]] == lengths[i]:
            runs[-1].append(i)
        else:
            runs.append([i])
        pieces += lengths[i]
    if runs:
        yield runs
