"""The graphs of CLDR and CLGS (Theodoropoulos et al. 2021, Eq. 1 to 3) and their hard negatives.

Plain PyTorch: a graph has two nodes, or the few words of a sentence's relations, so a batch of graphs is one
dense product; a graph library's sparse formats would not help.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

#: Negative graphs for each positive one.
HARD = 8


class PairGraph(nn.Module):
    """CLDR's graph of one relation, a drug and an effect: X' = ReLU(A X W) with A = [[l, 1-l], [1-l, l]]."""

    def __init__(self, dimension: int, self_loop: float = 0.8) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(dimension, dimension))
        nn.init.xavier_uniform_(self.weight)
        loop = torch.tensor([[self_loop, 1 - self_loop], [1 - self_loop, self_loop]])
        self.register_buffer("adjacency", loop)

    def forward(self, nodes: Tensor) -> Tensor:
        """(..., 2, d), drug and effect, to (..., 2 d), the concatenation of both outputs."""
        mixed = torch.relu(self.get_buffer("adjacency") @ nodes @ self.weight)
        return mixed.flatten(-2)


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
    weights = allowed.float()
    # Every allowed word is drawn once before one is repeated.
    keys = torch.rand(weights.shape, generator=generator).masked_fill(~allowed, 2)
    order = keys.argsort(1)
    place = torch.arange(count).unsqueeze(0) % allowed.sum(1, keepdim=True).clamp(max=count)
    return order.gather(1, place)


def hard_pairs(
    pairs: Tensor, drug: Tensor, effect: Tensor, negatives: int, generator: torch.Generator
) -> Tensor:
    """CLDR's hard negatives (section 3.2): (relations, negatives, 2) pairs of words, half of them the drug
    with a wrong effect, half a wrong drug with the effect.

    `pairs`: (relations, 2) words; `drug`, `effect`: (relations, words), the words allowed as a wrong one.
    """
    half = negatives // 2
    made = pairs.unsqueeze(1).repeat(1, negatives, 1)
    made[:, :half, 1] = wrong_words(effect, half, generator)
    made[:, half:, 0] = wrong_words(drug, negatives - half, generator)
    return made
