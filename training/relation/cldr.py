"""CLDR in training: the upper layers of an encoder by a contrast between pairs of words in the text and
two-node graphs of relations (Theodoropoulos et al. 2021, Eq. 5).

The lower layers are frozen and have no dropout. Not the paper's: with `heads` an additional contrast between
related and unrelated pairs, some of which are the pairs that the entity space finds in sentences without an
adverse event.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from models.encoder.layers import layers_of
from models.encoder.model import Encoder
from models.relation.support_set import Floats
from training.relation.data import Example, joined, offsets, pair_places
from training.relation.network import (
    HARD,
    PairGraph,
    graph_contrast,
    half_of,
    trained_copy,
    word_contrast,
    wrong_words,
)
from training.relation.settings import Settings
from training.relation.support import ValidationPairs, nearest, pair_scores
from training.relation.train import SAMPLE, Space

#: Neighbours that vote on a pair, as in the paper.
K_PAIRS = 5


class UpperSpace(Space):
    """What CLDR and CLGS share: an encoder of which the upper half is trained, and a graph."""

    graph: nn.Module

    def __init__(
        self,
        settings: Settings,
        encoder: Encoder,
        train: Sequence[Example],
        valid: Sequence[Example],
        device: torch.device | str = "cpu",
    ) -> None:
        """`encoder`: the initial one, on `device`, of which a copy is trained."""
        super().__init__(settings, device)
        self.frozen = half_of(encoder)
        self.encoder = trained_copy(encoder, self.frozen)
        self.train = [e for e in train if self.is_trained_on(e)]
        data = [*self.train, *valid]
        self.initial = {e.gold.id: v for e, v in zip(data, self.read(encoder, data), strict=True)}

    def is_trained_on(self, example: Example) -> bool:
        """Whether a sentence holds a pair to train on."""
        return len(example.pairs) > 0

    def modules(self) -> Sequence[nn.Module]:
        return self.encoder.model, self.graph

    def training(self, on: bool) -> None:
        """Switches dropout on or off, but for the frozen layers."""
        self.encoder.model.eval()
        for layer in layers_of(self.encoder.model)[self.frozen :]:
            layer.train(on)
        self.graph.train(on)

    def nodes(self, batch: Sequence[Example]) -> Tensor:
        """(words of the batch, d) of the initial encoder."""
        return torch.cat([self.initial[e.gold.id] for e in batch])

    def vectors(self, data: Sequence[Example]) -> Floats:
        """(words, d) of the trained encoder, sentence after sentence."""
        return torch.cat(self.read(self.encoder, data)).numpy()


class PairSpace(UpperSpace):
    """The embedding space of pairs of words: CLDR."""

    def __init__(
        self,
        settings: Settings,
        encoder: Encoder,
        train: Sequence[Example],
        valid: ValidationPairs,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__(settings, encoder, train, valid.examples, device)
        self.valid = valid
        self.graph = PairGraph(encoder.dimension)
        self.make_optimizer(sum(len(e.pairs) > 0 for e in self.train))

    def is_trained_on(self, example: Example) -> bool:
        return len(example.pairs) > 0 or (self.settings.heads and len(example.unrelated) > 0)

    def loss(self, batch: Sequence[Example], generator: torch.Generator) -> Tensor:
        """Eq. 5, and the contrast of pairs."""
        states = self.states(batch)
        chosen = [
            candidates(e, HARD, generator) + first for e, first in zip(batch, offsets(batch), strict=True)
        ]
        places, loss = torch.cat(chosen), 0 * states.sum()
        if len(places):
            text = states[places[:, 0].to(self.device)].flatten(-2)
            loss = loss + graph_contrast(text, self.graph(self.nodes(batch)[places].to(self.device)))
        if self.settings.heads:
            rows, related = (torch.from_numpy(x).to(self.device) for x in pair_places(batch))
            loss = loss + word_contrast(states[rows].flatten(1), related.long(), generator)
        return loss

    def scores(self) -> dict[str, float]:
        """Strict F1 of the pairs that the majority of five training pairs call related, both kinds of
        sentences in the corpus' proportion; 0 where the entity space finds no pair.
        """
        sample = random.Random(self.settings.seed).sample(self.train, min(SAMPLE, len(self.train)))
        (support, related), (queries, _) = (self.pairs(data) for data in (sample, self.valid.examples))
        shares = related[nearest(queries, support, K_PAIRS)].mean(1)
        return pair_scores(shares > 0.5, self.valid)  # noqa: PLR2004  majority

    def pairs(self, data: Sequence[Example]) -> tuple[Floats, Floats]:
        """(pairs, 2 d), and 1 for each that is related."""
        rows, related = pair_places(data)
        vectors = self.vectors(data) if data else np.zeros((0, self.encoder.dimension), np.float32)
        return joined(vectors, rows), related.astype(np.float32)


def candidates(example: Example, negatives: int, generator: torch.Generator) -> Tensor:
    """(relations, 1 + negatives, 2) words, the right pair first, then its hard negatives (section 3.2), half
    of them the drug with a wrong effect, half a wrong drug with the effect.

    A wrong word is outside of every mention of its kind, and never the other word of the pair. Relations
    without a possible wrong word are left out.
    """
    pairs, number = torch.from_numpy(example.pairs), torch.arange(len(example.pairs))
    wrong = torch.from_numpy(example.wrong).unsqueeze(1).repeat(1, len(pairs), 1)
    wrong[0, number, pairs[:, 1]] = wrong[1, number, pairs[:, 0]] = False
    possible, half = wrong.any(2).all(0), 1 + negatives // 2
    chosen = pairs[possible].unsqueeze(1).repeat(1, 1 + negatives, 1)
    chosen[:, 1:half, 1] = wrong_words(wrong[1, possible], half - 1, generator)
    chosen[:, half:, 0] = wrong_words(wrong[0, possible], 1 + negatives - half, generator)
    return chosen


def with_wrong_pairs(data: Sequence[Example], seed: int) -> list[Example]:
    """The sentences with two hard negatives of each relation among their unrelated pairs: without those that
    are found in sentences without an event the neighbours of a pair would all be related.
    """
    generator = torch.Generator().manual_seed(seed)
    drawn = [candidates(e, 2, generator)[:, 1:].flatten(0, 1).numpy() for e in data]
    return [replace(e, unrelated=np.concatenate([e.unrelated, d])) for e, d in zip(data, drawn, strict=True)]
