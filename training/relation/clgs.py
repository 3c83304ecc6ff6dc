"""CLGS in training: the upper layers of an encoder by a contrast between a sentence and the graph of all its
relations (Theodoropoulos et al. 2021, Eq. 4), and the similarity check of Table 2.

No bundled release uses this space; it is a comparison for CLDR.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from models.encoder.model import Encoder
from training.relation.cldr import UpperSpace
from training.relation.data import Example
from training.relation.network import HARD, RelationGraph, graph_contrast, wrong_words
from training.relation.settings import Settings


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
        texts, graphs = torch.split(self.states(batch), [len(e.tags) for e in batch]), []
        for e in batch:
            nodes, edges = graph_of(e, HARD, generator)
            graphs.append(self.graph(self.nodes([e])[nodes].to(self.device), edges.to(self.device)))
        return torch.stack([words.mean(0) for words in texts]), torch.stack(graphs)

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


def graph_of(e: Example, negatives: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Words (1 + negatives, nodes), the right graph first, and the edges (nodes, nodes) of all.

    Nodes are the last words of related mentions; one half of the negatives has wrong effects, the other half
    wrong drugs (section 3.2). A word may occur in it twice.
    """
    drugs, effects = (sorted(set(e.pairs[:, side].tolist())) for side in (0, 1))
    n, first, half = len(drugs) + len(effects), len(drugs), 1 + negatives // 2
    nodes, edges = torch.tensor([drugs + effects]).repeat(1 + negatives, 1), torch.zeros((n, n))
    for d, f in e.pairs.tolist():
        row, column = drugs.index(d), first + effects.index(f)
        edges[row, column] = edges[column, row] = 1
    drug, effect = torch.from_numpy(e.wrong)
    nodes[1:half, first:] = wrong_words(effect.repeat(n - first, 1), half - 1, generator).T
    nodes[half:, :first] = wrong_words(drug.repeat(first, 1), 1 + negatives - half, generator).T
    return nodes, edges
