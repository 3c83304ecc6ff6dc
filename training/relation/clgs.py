"""CLGS: the upper half of an encoder by a contrast between a sentence and the graph of all its relations
(Theodoropoulos et al. 2021, Eq. 4), and the check whether the right graph is the most similar (Table 2).

No release has this space: it is here to be compared with CLDR's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from models.encoder.layer_split import SplitEncoder
from models.encoder.model import Encoder
from training.relation.cldr import Frozen, UpperSpace
from training.relation.data import Example
from training.relation.graph_layers import RelationGraph, normalised, wrong_words
from training.relation.losses import graph_contrast
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
    """CLGS in training."""

    def __init__(
        self, settings: Settings, encoder: Encoder, train: Sequence[Example], valid: Sequence[Example]
    ) -> None:
        super().__init__(settings, encoder, train, valid)
        self.train = [e for e in self.train if has_wrong_words(e)]
        self.valid = [e for e in valid if len(e.pairs) and has_wrong_words(e)]
        self.graph = RelationGraph(encoder.dimension)
        self._optimize()

    def loss(self, batch: Sequence[Example], generator: torch.Generator) -> Tensor:
        text, graphs = self.both(batch, generator)
        return graph_contrast(text, graphs, self.settings.temperature)

    def both(self, batch: Sequence[Example], generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """(sentences, d) means over words, and (sentences, 1 + negatives, d) graphs."""
        graphs = graphs_of(batch, self.settings.hard, generator)
        vectors = self.frozen.words[graphs.nodes + self.initial(batch)[:, None, None]]
        states = torch.split(self.states(batch), [len(e.tags) for e in batch])
        text = torch.stack([s.mean(0) for s in states])
        return text, self.graph(vectors, graphs.adjacency, graphs.present)

    def validate(self) -> dict[str, float]:
        return {"similarity check": self.similarity_check(self.valid)}

    def similarity_check(self, data: Sequence[Example]) -> float:
        """Share of sentences to which, of the right graph and its hard negatives, the right one is nearest
        (Table 2). Chance is 1 in 9.
        """
        generator = torch.Generator().manual_seed(self.settings.seed)
        right = 0
        with torch.no_grad():
            for start in range(0, len(data), 64):
                text, graphs = self.both(data[start : start + 64], generator)
                similar = torch.cosine_similarity(text.unsqueeze(1), graphs, dim=-1)
                right += int((similar.argmax(1) == 0).sum())
        return right / max(1, len(data))

    def similarity_check_of(self, data: Sequence[Example], initial: Encoder) -> float:
        """The same of sentences that were neither trained nor validated with; `initial`: the encoder that
        training began with.
        """
        wanted = [e for e in data if len(e.pairs) and has_wrong_words(e)]
        self.frozen = Frozen(
            SplitEncoder(initial, self.settings.lower(initial.model)), wanted, self.settings.precision
        )
        return self.similarity_check(wanted)


def has_wrong_words(example: Example) -> bool:
    return bool((~example.drug).any() and (~example.effect).any())


def graphs_of(batch: Sequence[Example], negatives: int, generator: torch.Generator) -> Graphs:
    """Nodes are the last words of what is related; a negative graph has the same edges and, in one half of
    them, wrong effects, in the other half wrong drugs (section 3.2). A word may stand in it twice.
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
    return Graphs(nodes, normalised(edges, present), present)
