"""CLGS in training: the upper layers of an encoder by a contrast between a sentence and the graph of all its
relations (Theodoropoulos et al. 2021, Eq. 4), and the similarity check of Table 2.

No bundled release uses this space; it is a comparison for CLDR.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from models.encoder.model import Encoder
from training.relation.cldr import UpperSpace
from training.relation.data import Example, offsets
from training.relation.losses import graph_contrast
from training.relation.network import HARD, RelationGraph, degree_normalised, wrong_words
from training.relation.settings import Settings


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
        self.valid = [e for e in valid if self.is_trained_on(e)]
        self.graph = RelationGraph(encoder.dimension)
        self.make_optimizer(len(self.train))

    def is_trained_on(self, example: Example) -> bool:
        return len(example.pairs) > 0 and bool(example.wrong.any(1).all())

    def loss(self, batch: Sequence[Example], generator: torch.Generator) -> Tensor:
        """Eq. 4."""
        return graph_contrast(*self.both(batch, generator))

    def both(self, batch: Sequence[Example], generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """(sentences, d) means over words, and (sentences, 1 + negatives, d) graphs."""
        graphs = graphs_of(batch, HARD, generator)
        nodes = self.nodes(batch)[graphs.nodes + offsets(batch)[:, None, None]]
        found = self.graph(*(t.to(self.device) for t in (nodes, graphs.adjacency, graphs.present)))
        words = torch.split(self.states(batch), [len(e.tags) for e in batch])
        return torch.stack([own.mean(0) for own in words]), found

    def scores(self) -> dict[str, float]:
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


def graphs_of(batch: Sequence[Example], negatives: int, generator: torch.Generator) -> Graphs:
    """Nodes are the last words of related mentions; a negative graph has the same edges, one half of the
    negatives with wrong effects, the other half with wrong drugs (section 3.2). A word may occur in it twice.
    """
    sides = [[sorted(set(e.pairs[:, side].tolist())) for side in (0, 1)] for e in batch]
    size, half = max(len(drugs) + len(effects) for drugs, effects in sides), 1 + negatives // 2
    nodes = torch.zeros((len(batch), 1 + negatives, size), dtype=torch.long)
    edges = torch.zeros((len(batch), size, size))
    present = torch.zeros((len(batch), size), dtype=torch.bool)
    for row, (e, (drugs, effects)) in enumerate(zip(batch, sides, strict=True)):
        n, first = len(drugs) + len(effects), len(drugs)
        nodes[row, :, :n] = torch.tensor(drugs + effects)
        present[row, :n] = True
        for d, f in e.pairs.tolist():
            one, other = drugs.index(d), first + effects.index(f)
            edges[row, one, other] = edges[row, other, one] = 1
        drug, effect = torch.from_numpy(e.wrong)[:, None]
        for place in range(first, n):
            nodes[row, 1:half, place] = wrong_words(effect, half - 1, generator)[0]
        for place in range(first):
            nodes[row, half:, place] = wrong_words(drug, 1 + negatives - half, generator)[0]
    return Graphs(nodes, degree_normalised(edges, present), present)
