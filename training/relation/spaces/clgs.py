"""CLGS in training: the upper layers of an encoder by a contrast between a sentence and the graph of all its
relations (Theodoropoulos et al. 2021, Eq. 4), and the similarity check of Table 2.

No release uses this space; it is a comparison for CLDR.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from models.encoder.model import Encoder
from training.relation.data import Example
from training.relation.settings import Settings
from training.relation.spaces.cldr import UpperSpace
from training.relation.spaces.graph_layers import HARD, RelationGraph, degree_normalised, wrong_words
from training.relation.spaces.losses import graph_contrast


class Graphs(NamedTuple):
    """The graphs of a batch of sentences, padded to the largest."""

    nodes: Tensor
    """(sentences, 1 + negatives, nodes) words, the right graph first"""
    adjacency: Tensor
    """(sentences, nodes, nodes), normalised"""
    present: Tensor
    """(sentences, nodes)"""


class GraphSpace(UpperSpace):
    """The embedding space of whole sentences: CLGS."""

    def __init__(
        self,
        settings: Settings,
        encoder: Encoder,
        train: Sequence[Example],
        valid: Sequence[Example],
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__(settings, encoder, train, valid, device)
        self.train = [e for e in self.train if has_wrong_words(e)]
        self.valid = [e for e in valid if len(e.pairs) and has_wrong_words(e)]
        self.graph = RelationGraph(encoder.dimension)
        self._make_optimizer()

    def loss(self, batch: Sequence[Example], generator: torch.Generator) -> Tensor:
        text, graphs = self.both(batch, generator)
        return graph_contrast(text, graphs)

    def both(self, batch: Sequence[Example], generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """(sentences, d) means over words, and (sentences, 1 + negatives, d) graphs."""
        graphs = graphs_of(batch, HARD, generator)
        vectors = self.cached.words[graphs.nodes + self.initial(batch)[:, None, None]].to(self.device)
        adjacency, present = graphs.adjacency.to(self.device), graphs.present.to(self.device)
        states = torch.split(self.states(batch), [len(e.tags) for e in batch])
        text = torch.stack([s.mean(0) for s in states])
        return text, self.graph(vectors, adjacency, present)

    def validate(self, number: int = 0) -> dict[str, float]:
        return {"similarity check": self.similarity_check(self.valid)}

    def similarity_check(self, data: Sequence[Example]) -> float:
        """The share of sentences whose own graph is more similar to them than its hard negatives are (Table
        2); 1 in 9 by chance with eight negatives.
        """
        generator = torch.Generator().manual_seed(self.settings.seed)
        right = 0
        with torch.no_grad():
            for start in range(0, len(data), 64):
                text, graphs = self.both(data[start : start + 64], generator)
                similar = torch.cosine_similarity(text.unsqueeze(1), graphs, dim=-1)
                right += int((similar.argmax(1) == 0).sum())
        return right / max(1, len(data))


def has_wrong_words(example: Example) -> bool:
    return bool((~example.drug).any() and (~example.effect).any())


def graphs_of(batch: Sequence[Example], negatives: int, generator: torch.Generator) -> Graphs:
    """Nodes are the last words of related mentions; a negative graph has the same edges, one half of the
    negatives with wrong effects, the other half with wrong drugs (section 3.2). A word may occur in it twice.
    """
    size = max(len(set(e.pairs[:, 0])) + len(set(e.pairs[:, 1])) for e in batch)
    nodes = torch.zeros((len(batch), 1 + negatives, size), dtype=torch.long)
    edges = torch.zeros((len(batch), size, size))
    present = torch.zeros((len(batch), size), dtype=torch.bool)
    half = negatives // 2
    for row, e in enumerate(batch):
        drugs, effects = (sorted(set(e.pairs[:, side].tolist())) for side in (0, 1))
        n = len(drugs) + len(effects)
        nodes[row, :, :n] = torch.tensor(drugs + effects)
        present[row, :n] = True
        own = torch.from_numpy(e.pairs)
        one = torch.searchsorted(torch.tensor(drugs), own[:, 0].contiguous())
        other = torch.searchsorted(torch.tensor(effects), own[:, 1].contiguous()) + len(drugs)
        edges[row, one, other] = edges[row, other, one] = 1
        wrong = {side: torch.from_numpy(~own) for side, own in (("drug", e.drug), ("effect", e.effect))}
        for place in range(len(drugs), n):
            nodes[row, 1 : 1 + half, place] = wrong_words(wrong["effect"][None], half, generator)[0]
        for place in range(len(drugs)):
            nodes[row, 1 + half :, place] = wrong_words(wrong["drug"][None], negatives - half, generator)[0]
    return Graphs(nodes, degree_normalised(edges, present), present)
