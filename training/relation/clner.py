"""CLNER: an encoder and one dense layer by a supervised contrast over the words of a batch (Theodoropoulos et
al. 2021, Eq. 6).

Not the paper's: sentences without an adverse event beside the others, whose drugs are not learnt; and, where
asked for, a cross-entropy over the tags beside the contrast.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from models.encoder.model import Encoder
from training.common import adapter
from training.common.precision import mixed
from training.relation.data import TAGS, UNKNOWN, Corpus, Example, batches, examples, known_drugs, word_states
from training.relation.knn_scores import Queries, tag_scores
from training.relation.losses import word_contrast
from training.relation.settings import Settings, open_weights, optimizer_of, step

#: Training sentences, and a fifth as many without an event, that stand for all in an epoch's validation.
SAMPLE = 1500
#: Rate of the dense layer, which begins as chance.
DENSE_LR = 1e-3
K_WORDS = 7


class EntitySpace:
    """CLNER in training."""

    def __init__(self, settings: Settings, corpus: Corpus) -> None:
        torch.manual_seed(settings.seed)
        self.settings = settings
        plain = Encoder.load(settings.base)
        self.encoder = adapter.trainable(plain, 0)
        open_weights(self.encoder, 0)
        self.dense = nn.Linear(self.encoder.dimension, settings.width, bias=False)
        self.head = nn.Linear(self.encoder.dimension, len(TAGS))
        self.head.requires_grad_(settings.cross_entropy > 0)
        drugs = known_drugs(corpus.train) if settings.ignore_drugs else []
        self.train = [e for e in examples(corpus.train, plain) if e.pieces]
        self.negatives = [e for e in examples(corpus.negatives, plain, drugs) if e.pieces]
        self.valid = Queries(examples(corpus.valid, plain), examples(corpus.alarms, plain))
        per_epoch = len(self.train) + min(settings.negatives, len(self.negatives))
        self.parameters = [p for m in self.trained() for p in adapter.trained_parameters(m)]
        dense = adapter.trained_parameters(self.dense) + adapter.trained_parameters(self.head)
        groups: list[dict[str, Any]] = [
            {"params": adapter.trained_parameters(self.encoder.model), "lr": settings.lr},
            {"params": dense, "lr": DENSE_LR},
        ]
        self.optimizer, self.schedule = optimizer_of(
            groups, settings.epochs, -(-per_epoch // self._batch(per_epoch))
        )

    def trained(self) -> list[nn.Module]:
        return [self.encoder.model, self.dense, self.head]

    def epoch(self, number: int) -> float:
        rng = random.Random(self.settings.seed * 1000 + number)
        generator = torch.Generator().manual_seed(self.settings.seed * 1000 + number)
        plain = rng.sample(self.negatives, min(self.settings.negatives, len(self.negatives)))
        data = self.train + plain
        self.encoder.model.train()
        losses = [
            step(self, self.loss(batch, generator), self.parameters)
            for batch in batches(data, self._batch(len(data)), rng)
        ]
        self.encoder.model.eval()
        return sum(losses) / len(losses)

    def _batch(self, sentences: int) -> int:
        """The paper's number of sentences with an event in a batch, and its share of those without."""
        return max(1, round(self.settings.batch * sentences / max(1, len(self.train))))

    def loss(self, batch: Sequence[Example], generator: torch.Generator) -> Tensor:
        with mixed(self.settings.precision):
            hidden = self.encoder.forward([e.pieces for e in batch])
        states = word_states(hidden, batch)
        tags = torch.cat([torch.from_numpy(e.tags) for e in batch])
        states, tags = states[tags != UNKNOWN], tags[tags != UNKNOWN]
        weights = self.settings
        loss = 0 * states.sum()
        if weights.contrast:
            contrast = word_contrast(
                self.dense(states), tags, weights.samples, generator, weights.temperature
            )
            loss = loss + weights.contrast * contrast
        if weights.cross_entropy:
            loss = loss + weights.cross_entropy * nn.functional.cross_entropy(self.head(states), tags)
        return loss

    def vectors(self, data: Sequence[Example]) -> Tensor:
        """(words, width), sentence after sentence."""
        with torch.no_grad():
            return self.dense(encoded(self.encoder, data, self.settings.precision))  # type: ignore[no-any-return]

    def validate(self) -> dict[str, float]:
        """Strict micro F1 of the mentions by seven neighbours, and false effects among the alarms."""
        rng = random.Random(self.settings.seed)
        sample = rng.sample(self.train, min(SAMPLE, len(self.train)))
        sample += rng.sample(self.negatives, min(len(sample) // 5, len(self.negatives)))
        tags = torch.cat([torch.from_numpy(e.tags) for e in sample])
        support = self.vectors(sample)[tags != UNKNOWN]
        queries = self.vectors(self.valid.examples)
        found = tag_scores(support, tags[tags != UNKNOWN], queries, self.valid, [K_WORDS], self.settings.vote)
        return found[K_WORDS]

    def adapter(self) -> dict[str, Tensor]:
        """What a release holds of the encoder."""
        return adapter.factored(
            Encoder.load(self.settings.base).model, self.encoder.model, self.settings.rank
        )


def encoded(encoder: Encoder, data: Sequence[Example], precision: str, size: int = 64) -> Tensor:
    """(words, d), sentence after sentence in the order given; computed in batches of like length."""
    order = sorted(range(len(data)), key=lambda i: len(data[i].pieces))
    found: list[Tensor] = [torch.empty(0)] * len(data)
    with torch.no_grad():
        for start in range(0, len(order), size):
            part = order[start : start + size]
            batch = [data[i] for i in part]
            with mixed(precision):
                hidden = encoder.forward([e.pieces for e in batch])
            states = word_states(hidden, batch)
            for i, own in zip(part, torch.split(states, [len(e.tags) for e in batch]), strict=True):
                found[i] = own
    return torch.cat(found)
