"""CLDR in training: the upper layers of an encoder by a contrast between pairs of words in the text and
two-node graphs of relations (Theodoropoulos et al. 2021, Eq. 5).

The lower layers are frozen and have no dropout, so their hidden states are computed once and cached. Not the
paper's: an additional contrast between related and unrelated pairs, some of which are the pairs that the
entity space finds in sentences without an adverse event.
"""

from __future__ import annotations

import copy
import random
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from models.encoder.model import Encoder
from models.encoder.split.layer_split import EncodedSentence, SplitEncoder, UpperLayers
from models.text import word_texts
from training.common import adapter
from training.common.batching import by_length
from training.common.loop import Trainee, steps_of, warmup_linear
from training.common.precision import mixed
from training.relation.data import (
    Example,
    ValidationPairs,
    offsets,
    sentence_batches,
    train_layers,
    word_states,
)
from training.relation.knn_scores import PAIR_SCORES, pair_scores
from training.relation.settings import Settings, frozen_layers
from training.relation.spaces.graph_layers import HARD, PairGraph, hard_pairs
from training.relation.spaces.losses import graph_contrast, word_contrast

K_PAIRS = 5
#: Training sentences whose pairs are the support set of an epoch's validation.
SAMPLE = 1500
#: Sentences with a relation in a batch.
BATCH = 8
#: Learning rate of the graph's weights, which start from random ones.
GRAPH_LR = 1e-3


class CachedStates:
    """Computed once for all epochs: of each sentence the hidden states of the last frozen layer, and the
    initial encoder's vectors of its words.
    """

    def __init__(self, lower: SplitEncoder, data: Sequence[Example], precision: str) -> None:
        read: list[EncodedSentence] = []
        with torch.no_grad(), mixed(precision, lower.model.device):
            for start in range(0, len(data), 256):
                read += lower.encode([word_texts(e.gold.text) for e in data[start : start + 256]])
        # Of a sentence that is longer than the encoder's limit the first window.
        self.middle = {
            e.gold.id: r.split_states[0][: len(e.pieces) + 2].half().cpu().clone()
            for e, r in zip(data, read, strict=True)
        }
        self.words = torch.cat([r.vectors[: len(e.tags)] for e, r in zip(data, read, strict=True)])
        firsts = offsets(data).tolist()
        self.first = {e.gold.id: f for e, f in zip(data, firsts, strict=True)}


class UpperSpace(Trainee):
    """What CLDR and CLGS share: upper layers over cached states, a graph, and vectors of the words of
    sentences.
    """

    graph: nn.Module
    scores_untrained = True

    def __init__(
        self,
        settings: Settings,
        encoder: Encoder,
        train: Sequence[Example],
        valid: Sequence[Example],
        device: torch.device | str = "cpu",
    ) -> None:
        """`encoder`: the initial one, on `device`, of which a copy is trained."""
        torch.manual_seed(settings.seed)
        self.settings, self.device = settings, torch.device(device)
        self.epochs, self.patience = settings.pair_epochs, settings.patience
        frozen = frozen_layers(encoder.model)
        copied = Encoder(copy.deepcopy(encoder.model), encoder.tokenizer, encoder.max_pieces)
        train_layers(copied, frozen)
        self.upper = UpperLayers(copied, frozen)
        self.train = [e for e in train if self.is_trained_on(e)]
        self.cached = CachedStates(SplitEncoder(encoder, frozen), [*self.train, *valid], settings.precision)

    def is_trained_on(self, example: Example) -> bool:
        """Whether a sentence holds a pair to train on."""
        return len(example.pairs) > 0

    def modules(self) -> Sequence[nn.Module]:
        return self.upper.model, self.graph

    def _make_optimizer(self) -> None:
        groups: list[dict[str, Any]] = [
            {"params": adapter.trained_parameters(self.upper.model), "lr": self.settings.pair_lr},
            {"params": adapter.trained_parameters(self.graph), "lr": GRAPH_LR},
        ]
        self.optimizer = torch.optim.Adam(groups, fused=True)
        steps = steps_of(self.epochs, len(self.train), self._batch())
        self.schedule = warmup_linear(self.optimizer, max(self.epochs, steps))

    def states(self, batch: Sequence[Example]) -> Tensor:
        """(words of the batch, d) of the trained encoder; gradients flow."""
        with mixed(self.settings.precision, self.device):
            hidden = self.upper.forward_states([self.cached.middle[e.gold.id] for e in batch])
        return word_states(hidden, batch)

    def vectors(self, data: Sequence[Example], size: int = 64) -> Tensor:
        """(words, d) of the trained encoder on the CPU, sentence after sentence in the order given."""
        found: list[Tensor] = [torch.empty(0)] * len(data)
        with torch.no_grad():
            for part in by_length([len(e.pieces) for e in data], size):
                batch = [data[i] for i in part]
                counts = [len(e.tags) for e in batch]
                for i, own in zip(part, torch.split(self.states(batch).cpu(), counts), strict=True):
                    found[i] = own
        return torch.cat(found)

    def epoch(self, number: int) -> dict[str, float]:
        seed = self.settings.seed * 1000 + number
        generator = torch.Generator().manual_seed(seed)
        batches = sentence_batches(self.train, self._batch(), random.Random(seed))
        return self.one_pass(batches, lambda batch: self.loss(batch, generator), number)

    def _batch(self) -> int:
        return BATCH

    @abstractmethod
    def loss(self, batch: Sequence[Example], generator: torch.Generator) -> Tensor:
        """The loss of a batch; `generator` draws the negatives. Gradients flow."""

    def initial(self, batch: Sequence[Example]) -> Tensor:
        """(sentences,): the row of each sentence's first word in the initial encoder's vectors."""
        return torch.tensor([self.cached.first[e.gold.id] for e in batch])


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
        self._make_optimizer()

    def is_trained_on(self, example: Example) -> bool:
        return len(example.pairs) > 0 or (self.settings.pair_contrast > 0 and len(example.unrelated) > 0)

    def _batch(self) -> int:
        """The size of a batch that holds the set number of sentences with a relation, and their share of
        those without.
        """
        related = sum(len(e.pairs) > 0 for e in self.train)
        return max(1, round(BATCH * len(self.train) / max(1, related)))

    def loss(self, batch: Sequence[Example], generator: torch.Generator) -> Tensor:
        states = self.states(batch)
        loss = self._graph_loss(batch, states, generator)
        if self.settings.pair_contrast:
            vectors, related = pairs_of(batch, states)
            contrast = word_contrast(vectors, related.long().to(self.device), generator)
            loss = loss + self.settings.pair_contrast * contrast
        return loss

    def _graph_loss(self, batch: Sequence[Example], states: Tensor, generator: torch.Generator) -> Tensor:
        """Eq. 5."""
        chosen, sentence = candidates(batch, HARD, generator)
        if not len(chosen):
            return 0 * states.sum()
        initial = self.cached.words[chosen + self.initial(batch)[sentence, None, None]]
        graphs = self.graph(initial.to(self.device))
        text = states[chosen[:, 0] + offsets(batch)[sentence, None]].flatten(-2)
        return graph_contrast(text, graphs)

    def validate(self, number: int = 0) -> dict[str, float]:
        """Strict F1 of the pairs that the majority of five training pairs call related, both kinds of
        sentences in the corpus' proportion; 0 where the entity space finds no pair.
        """
        if not self.valid.examples:
            return dict.fromkeys(PAIR_SCORES, 0.0)
        generator = torch.Generator().manual_seed(self.settings.seed)
        sample = random.Random(self.settings.seed).sample(self.train, min(SAMPLE, len(self.train)))
        support, related = self.pairs(sample, generator)
        queries, gold = pairs_of(self.valid.examples, self.vectors(self.valid.examples))
        return pair_scores(support, related, queries, gold, self.valid, [K_PAIRS])[K_PAIRS]

    def pairs(self, data: Sequence[Example], generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """(pairs, 2 d), and which are related: those of the sentences, or, where training uses no unrelated
        pairs, every relation and two drawn negatives of it.
        """
        if self.settings.pair_contrast:
            return pairs_of(data, self.vectors(data))
        chosen, sentence = candidates(data, 2, generator)
        places = chosen + offsets(data)[sentence, None, None]
        related = torch.zeros(places.shape[:2], dtype=torch.bool)
        related[:, 0] = True
        return self.vectors(data)[places].flatten(2).flatten(0, 1), related.flatten()


def pairs_of(batch: Sequence[Example], states: Tensor) -> tuple[Tensor, Tensor]:
    """(pairs, 2 d), and which are related, from the words' states (words, d), sentence after sentence."""
    first = offsets(batch).tolist()
    both = [
        (torch.from_numpy(rows) + f, related)
        for e, f in zip(batch, first, strict=True)
        for rows, related in ((e.pairs, True), (e.unrelated, False))
    ]
    related = torch.cat([torch.full((len(rows),), kind) for rows, kind in both])
    return states[torch.cat([rows for rows, _ in both])].flatten(1), related


def candidates(batch: Sequence[Example], negatives: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """(relations, 1 + negatives, 2) words, the right pair first, and the sentence of each relation.

    The wrong word of a negative is outside of every mention of its kind, and never the other word of the
    pair. Relations of a sentence without a possible wrong word are left out.
    """
    counts = torch.tensor([len(e.pairs) for e in batch])
    sentence = torch.repeat_interleave(torch.arange(len(batch)), counts)
    pairs = torch.cat([torch.from_numpy(e.pairs) for e in batch])
    width = max(len(e.tags) for e in batch)
    allowed = torch.zeros((2, len(batch), width), dtype=torch.bool)
    for row, e in enumerate(batch):
        for side, own in enumerate((e.drug, e.effect)):
            allowed[side, row, : len(own)] = ~torch.from_numpy(own)
    wrong = allowed[:, sentence]
    number = torch.arange(len(pairs))
    wrong[0, number, pairs[:, 1]] = False
    wrong[1, number, pairs[:, 0]] = False
    kept = wrong.any(2).all(0)
    pairs, sentence = pairs[kept], sentence[kept]
    made = hard_pairs(pairs, wrong[0, kept], wrong[1, kept], negatives, generator)
    return torch.cat([pairs.unsqueeze(1), made], 1), sentence
