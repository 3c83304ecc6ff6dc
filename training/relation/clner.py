"""CLNER in training: an encoder and a dense layer by a supervised contrastive loss over the words of a batch
(Theodoropoulos et al. 2021, Eq. 6).

Three things are not the paper's: sentences without an adverse event (their drugs are left out), and with
`heads` two cross-entropies, over the tags and over whether the sentence reports an event. They shape the
encoder; a release holds no head.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy
from torch.nn.utils.rnn import pad_sequence

from models.encoder.model import Encoder
from models.ner.heads import EventHead
from models.relation.support_set import Floats
from training.common import adapter
from training.relation.data import TAGS, UNKNOWN, Corpus, Example, examples, has_effect, known_drugs
from training.relation.network import trained_copy, word_contrast
from training.relation.settings import Settings
from training.relation.tagger import mention_f1, voted
from training.relation.train import SAMPLE, Space

#: Of the dense layer.
WIDTH = 128
#: Neighbours that vote on a word, as in the paper.
K_WORDS = 7
#: Weight of the loss of the sentence's head.
EVENT = 0.3


class EntitySpace(Space):
    """The embedding space of entities: encoder, dense layer, and the heads of tags and of sentences."""

    def __init__(self, settings: Settings, corpus: Corpus, device: torch.device | str = "cpu") -> None:
        super().__init__(settings, device)
        plain = Encoder.load(settings.base)
        self.encoder = trained_copy(plain, 0)
        width = self.encoder.dimension
        self.dense = nn.Linear(width, WIDTH, bias=False)
        self.heads = (nn.Linear(width, len(TAGS)), EventHead(width)) if settings.heads else None
        drugs = known_drugs(corpus.train)
        self.train = [e for e in examples(corpus.train, plain) if e.pieces]
        self.negatives = [e for e in examples(corpus.negatives, plain, drugs) if e.pieces]
        self.valid = examples(corpus.valid, plain)
        self.make_optimizer(len(self.train))

    def modules(self) -> Sequence[nn.Module]:
        return [self.encoder.model, self.dense, *(self.heads or ())]

    def sentences(self, rng: random.Random) -> list[Example]:
        return self.train + rng.sample(self.negatives, min(self.settings.negatives, len(self.negatives)))

    def loss(self, batch: Sequence[Example], generator: torch.Generator) -> Tensor:
        """Eq. 6, and the losses of the heads; `generator` draws the words that are compared."""
        whole = self.states(batch)
        tags = torch.cat([torch.from_numpy(e.tags) for e in batch]).to(self.device)
        states, tags = whole[tags != UNKNOWN], tags[tags != UNKNOWN]
        loss = word_contrast(self.dense(states), tags, generator)
        if self.heads is None:
            return loss
        head, event = self.heads
        by_sentence = torch.split(whole, [len(e.tags) for e in batch])
        inside = pad_sequence([whole.new_ones(len(rows)) for rows in by_sentence], batch_first=True) > 0
        logits = event(pad_sequence(list(by_sentence), batch_first=True), inside)
        events = torch.tensor([float(has_effect(e.gold)) for e in batch], device=self.device)
        loss = loss + EVENT * binary_cross_entropy_with_logits(logits, events)
        return loss + cross_entropy(head(states), tags)

    def vectors(self, data: Sequence[Example]) -> Floats:
        """(words, width), sentence after sentence."""
        states = torch.cat(self.read(self.encoder, data))
        with torch.inference_mode():
            projected: Floats = self.dense(states.to(self.device)).cpu().numpy()
        return projected

    def scores(self) -> dict[str, float]:
        """Strict F1 of the mentions by seven neighbours, each word by itself."""
        rng = random.Random(self.settings.seed)
        sample = rng.sample(self.train, min(SAMPLE, len(self.train)))
        sample += rng.sample(self.negatives, min(len(sample) // 5, len(self.negatives)))
        tags = np.concatenate([e.tags for e in sample])
        known = tags != UNKNOWN
        queries = self.vectors(self.valid)
        shares = voted(self.vectors(sample)[known], tags[known], queries, K_WORDS)
        return {"strict micro F1": mention_f1(shares.argmax(1), self.valid)}

    def adapter(self) -> dict[str, Tensor]:
        """The encoder's difference from its base as a release holds it."""
        return adapter.quantized(Encoder.load(self.settings.base).model, self.encoder.model)
