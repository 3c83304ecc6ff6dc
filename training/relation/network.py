"""What CLNER, CLDR and CLGS train: a copy of an encoder, and the graphs of relations (Theodoropoulos et al.
2021, Eq. 1 to 3) with their wrong words.

A graph has two nodes, or the few words of a sentence's relations, so a batch of graphs is one dense product.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from models.encoder.model import Encoder
from models.encoder.split.layers import Layers
from training.common import adapter
from training.relation.data import Example, offsets

#: Negative graphs for each positive one, and how much a node of a pair counts in its own state.
HARD, SELF_LOOP = 8, 0.8


def half_of(encoder: Encoder) -> int:
    """How many lower layers CLDR and CLGS leave frozen, as in the paper."""
    return Layers(encoder.model).number // 2


def trained_copy(encoder: Encoder, frozen: int) -> Encoder:
    """A copy of which the layers above the first `frozen` layers are trained."""
    copied = adapter.trainable(encoder, 0)
    # The backward pass through the fused attention takes a fifth of a step on a processor.
    copied.model.set_attn_implementation("eager")
    Layers(copied.model).freeze(frozen)
    return copied


def word_states(hidden: Tensor, batch: Sequence[Example]) -> Tensor:
    """(words of the batch, d): the mean of each word's pieces, from hidden states (sentences, pieces, d) with
    the special token first; sentence after sentence. Gradients flow.
    """
    device, firsts = hidden.device, offsets(batch).tolist()
    lengths = torch.tensor([len(e.pieces) for e in batch])
    rows = torch.repeat_interleave(torch.arange(len(batch)), lengths).to(device)
    columns = torch.cat([torch.arange(1, n + 1) for n in lengths.tolist()]).to(device)
    word = np.concatenate([e.word_of + first for e, first in zip(batch, firsts, strict=True)])
    numbers, n_words = torch.from_numpy(word).to(device), sum(len(e.tags) for e in batch)
    sums = hidden.new_zeros((n_words, hidden.shape[-1])).index_add(0, numbers, hidden[rows, columns])
    return sums / torch.bincount(numbers, minlength=n_words).clamp(min=1).unsqueeze(1)


class PairGraph(nn.Module):
    """CLDR's graph of one relation, a drug and an effect: X' = ReLU(A X W) with A = [[l, 1-l], [1-l, l]]."""

    def __init__(self, dimension: int, self_loop: float = SELF_LOOP) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(dimension, dimension))
        nn.init.xavier_uniform_(self.weight)
        loop = torch.tensor([[self_loop, 1 - self_loop], [1 - self_loop, self_loop]])
        self.register_buffer("adjacency", loop)

    def forward(self, nodes: Tensor) -> Tensor:
        """(..., 2, d), drug and effect, to (..., 2 d), the concatenation of both outputs."""
        return torch.relu(self.get_buffer("adjacency") @ nodes @ self.weight).flatten(-2)


class RelationGraph(nn.Module):
    """CLGS's graph of a sentence's relations: the mean over nodes of tanh(D^-1/2 (A + I) D^-1/2 X W)."""

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(dimension, dimension))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, nodes: Tensor, adjacency: Tensor, present: Tensor) -> Tensor:
        """Nodes (graphs, Z, n, d), adjacency (graphs, n, n) from `degree_normalised`, and which nodes exist
        (graphs, n), to (graphs, Z, d).
        """
        states = torch.tanh(adjacency.unsqueeze(1) @ nodes @ self.weight)
        weights = present.to(states.dtype)[:, None, :, None]
        return (states * weights).sum(2) / weights.sum(2).clamp(min=1)


def degree_normalised(edges: Tensor, present: Tensor) -> Tensor:
    """Eq. 1 and 2: D^-1/2 (A + I) D^-1/2 of (graphs, n, n) edges, those of absent nodes left out."""
    looped = edges + torch.diag_embed(present.to(edges.dtype))
    root = looped.sum(-1).clamp(min=1e-12).rsqrt() * present
    return root.unsqueeze(-1) * looped * root.unsqueeze(-2)


def wrong_words(allowed: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """(rows, count): `count` random words of each row of (rows, words), of those allowed, with repetition
    where fewer are allowed. Every row must allow at least one.
    """
    # Every allowed word is drawn once before one is repeated.
    keys = torch.rand(allowed.shape, generator=generator).masked_fill(~allowed, 2)
    place = torch.arange(count).unsqueeze(0) % allowed.sum(1, keepdim=True).clamp(max=count)
    return keys.argsort(1).gather(1, place)
