"""CLNER in training: an encoder and a dense layer by a supervised contrastive loss over the words of a batch
(Theodoropoulos et al. 2021, Eq. 6).

Three things are not the paper's: sentences without an adverse event are trained on too (their drugs are left
out), and two cross-entropies may be added, over the tags and over whether the sentence reports an event.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from models.encoder.model import Encoder
from models.ner.head import EventHead
from training.common import adapter
from training.common.batching import by_length
from training.common.loop import AveragingTrainee, steps_of, warmup_linear
from training.common.precision import mixed
from training.relation.data import (
    TAGS,
    UNKNOWN,
    Corpus,
    Example,
    examples,
    has_effect,
    known_drugs,
    sentence_batches,
    train_layers,
    word_states,
)
from training.relation.heads.event import best_f1
from training.relation.knn_scores import Queries, tag_scores
from training.relation.settings import Settings
from training.relation.spaces.losses import word_contrast

#: Training sentences, and a fifth as many without an event, that are the support set of an epoch's
#: validation.
SAMPLE = 1500
#: Learning rate of the dense layer, which starts from random weights.
DENSE_LR = 1e-3
#: Of the dense layer.
WIDTH = 128
K_WORDS = 7


class EntitySpace(AveragingTrainee):
    """The embedding space of entities: encoder, dense layer and, for the cross-entropy, a linear head."""

    scores_untrained = True

    def __init__(self, settings: Settings, corpus: Corpus, device: torch.device | str = "cpu") -> None:
        super().__init__(settings.average)
        torch.manual_seed(settings.seed)
        self.settings, self.device = settings, torch.device(device)
        self.epochs, self.patience = settings.epochs, settings.patience
        plain = Encoder.load(settings.base)
        self.encoder = adapter.trainable(plain, 0)
        train_layers(self.encoder, 0)
        self.dense = nn.Linear(self.encoder.dimension, WIDTH, bias=False)
        self.head = nn.Linear(self.encoder.dimension, len(TAGS))
        self.head.requires_grad_(settings.cross_entropy > 0)
        self.event = EventHead(self.encoder.dimension) if settings.event else None
        drugs = known_drugs(corpus.train)
        self.train = [e for e in examples(corpus.train, plain) if e.pieces]
        self.negatives = [e for e in examples(corpus.negatives, plain, drugs) if e.pieces]
        self.valid = Queries(examples(corpus.valid, plain), examples(corpus.valid_negatives, plain))
        per_epoch = len(self.train) + min(settings.negatives, len(self.negatives))
        dense = [p for head in self.modules()[1:] for p in adapter.trained_parameters(head)]
        groups: list[dict[str, Any]] = [
            {"params": adapter.trained_parameters(self.encoder.model), "lr": settings.lr},
            {"params": dense, "lr": DENSE_LR},
        ]
        self.optimizer = torch.optim.Adam(groups, fused=True)
        steps = steps_of(settings.epochs, per_epoch, self._batch(per_epoch))
        self.schedule = warmup_linear(self.optimizer, max(settings.epochs, steps))

    def modules(self) -> Sequence[nn.Module]:
        heads = self.dense, self.head, self.event
        return [self.encoder.model, *(head for head in heads if head is not None)]

    def epoch(self, number: int) -> dict[str, float]:
        rng = random.Random(self.settings.seed * 1000 + number)
        generator = torch.Generator().manual_seed(self.settings.seed * 1000 + number)
        data = self.train + rng.sample(self.negatives, min(self.settings.negatives, len(self.negatives)))
        batches = sentence_batches(data, self._batch(len(data)), rng)
        losses = self.one_pass(batches, lambda batch: self.loss(batch, generator), number)
        self.end_epoch()
        return losses

    def _batch(self, sentences: int) -> int:
        """The size of a batch that holds the set number of sentences with an event, and their share of those
        without.
        """
        return max(1, round(self.settings.batch * sentences / max(1, len(self.train))))

    def loss(self, batch: Sequence[Example], generator: torch.Generator) -> Tensor:
        """The weighted losses of a batch; `generator` draws the words that are compared."""
        with mixed(self.settings.precision, self.device):
            hidden = self.encoder.forward([e.pieces for e in batch])
        whole = word_states(hidden, batch)
        tags = torch.cat([torch.from_numpy(e.tags) for e in batch]).to(self.device)
        states, tags = whole[tags != UNKNOWN], tags[tags != UNKNOWN]
        weights = self.settings
        loss = word_contrast(self.dense(states), tags, generator)
        if self.event is not None:
            events = torch.tensor([float(has_effect(e.gold)) for e in batch], device=self.device)
            found = self.event_logits(self.event, whole, batch)
            loss = loss + weights.event * nn.functional.binary_cross_entropy_with_logits(found, events)
        if weights.cross_entropy:
            loss = loss + weights.cross_entropy * nn.functional.cross_entropy(self.head(states), tags)
        return loss

    @staticmethod
    def event_logits(head: EventHead, states: Tensor, batch: Sequence[Example]) -> Tensor:
        """(sentences,) from the states of their words, (words, d), sentence after sentence."""
        own = torch.split(states, [len(e.tags) for e in batch])
        inside = pad_sequence([states.new_ones(len(rows)) for rows in own], batch_first=True) > 0
        logits: Tensor = head(pad_sequence(list(own), batch_first=True), inside)
        return logits

    def vectors(self, data: Sequence[Example]) -> Tensor:
        """(words, width) on the CPU, sentence after sentence."""
        return self._vectors(encoded(self.encoder, data, self.settings.precision))

    def _vectors(self, states: Tensor) -> Tensor:
        with torch.no_grad():
            found: Tensor = self.dense(states)
            return found.cpu()

    def validate(self, number: int = 0) -> dict[str, float]:
        """Strict F1 of the mentions by seven neighbours, and effects in sentences without an event, with the
        mean of the last epochs' weights.
        """
        with self.averaged():
            return self.scores()

    def scores(self) -> dict[str, float]:
        """As `validate`, with the weights as they are."""
        rng = random.Random(self.settings.seed)
        sample = rng.sample(self.train, min(SAMPLE, len(self.train)))
        sample += rng.sample(self.negatives, min(len(sample) // 5, len(self.negatives)))
        tags = torch.cat([torch.from_numpy(e.tags) for e in sample])
        support = self.vectors(sample)[tags != UNKNOWN]
        data = self.valid.examples
        states = encoded(self.encoder, data, self.settings.precision)
        queries = self._vectors(states)
        found = tag_scores(support, tags[tags != UNKNOWN], queries, self.valid, [K_WORDS])
        scores = found[K_WORDS]
        if self.event is not None and data:
            with torch.no_grad():
                logits = self.event_logits(self.event, states, data).cpu().numpy()
            scores["sentence F1"] = best_f1(logits, np.array([has_effect(e.gold) for e in data]))
        return scores

    def adapter(self) -> dict[str, Tensor]:
        """The encoder's difference from its base as a release holds it."""
        return adapter.quantized(Encoder.load(self.settings.base).model, self.encoder.model)


def encoded(encoder: Encoder, data: Sequence[Example], precision: str, size: int = 64) -> Tensor:
    """(words, d) on the encoder's device, sentence after sentence in the order given; computed in batches of
    like length.
    """
    found: list[Tensor] = [torch.empty(0)] * len(data)
    with torch.no_grad():
        for part in by_length([len(e.pieces) for e in data], size):
            batch = [data[i] for i in part]
            with mixed(precision, encoder.model.device):
                hidden = encoder.forward([e.pieces for e in batch])
            states = word_states(hidden, batch)
            for i, own in zip(part, torch.split(states, [len(e.tags) for e in batch]), strict=True):
                found[i] = own
    return torch.cat(found)
