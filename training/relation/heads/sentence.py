"""The sentence head in training: whether a sentence reports an adverse event, by upper layers and attention
over cached hidden states of the frozen lower layers.

It learns from the ADE corpus' sentences with and without an event, and from the clinical sentences of the
teaching corpus. All training sentences without an event in which the entity space finds a pair are among
them: it is these that cost precision.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from models.encoder.model import Encoder
from models.encoder.split.layer_split import SplitEncoder, UpperLayers
from models.ner.head import EventHead
from models.relation.pairs import LABELS
from models.relation.sentence_head import SENTENCE_ADAPTER, SENTENCE_HEAD, SentenceHead
from models.relation.spaces import UPPER_ADAPTER
from models.releases.tensors import read_tensors
from models.text import word_texts
from training.common import adapter
from training.common.batching import by_length, length_batches
from training.common.corpora import GoldText
from training.common.loop import Trainee, steps_of, warmup_linear
from training.common.precision import mixed
from training.relation.data import POOL, Corpus, has_effect, train_layers
from training.relation.heads.sentence_scores import best_f1
from training.relation.settings import Settings
from training.teaching.readers import gold_texts, sample

#: Learning rate of the attention and the linear layer, which start from random weights.
HEAD_LR = 1e-3
WEIGHT_DECAY = 0.01


class Sentence(NamedTuple):
    """A sentence by its hidden states at the split, (pieces + 2, dimension), in 16 bits."""

    states: Tensor
    event: bool


def texts_of(corpus: Corpus, found: Sequence[GoldText], settings: Settings) -> list[GoldText]:
    """What the head is trained on; `found` are training sentences without an event in which the entity space
    finds a pair. The others of that kind are drawn until there are as many as the settings say.
    """
    hard = {t.id for t in found}
    rest = [t for t in corpus.negatives if t.id not in hard]
    random.Random(settings.seed).shuffle(rest)
    known = {t.id for part in corpus for t in part}
    return [
        *corpus.train,
        *(t for t in taught_texts(settings) if t.id not in known),
        *found,
        *rest[: max(0, settings.sentence_negatives - len(hard))],
    ]


def taught_texts(settings: Settings) -> list[GoldText]:
    """The texts of the teaching corpus among them."""
    return sample(gold_texts("clinical", "train", labels=LABELS), settings.sentence_teaching, settings.seed)


def cached(encoder: SplitEncoder, texts: Sequence[GoldText], precision: str) -> list[Sentence]:
    """The sentences that have pieces; of a long one the first window."""
    found = []
    with torch.no_grad(), mixed(precision, encoder.model.device):
        for start in range(0, len(texts), 256):
            part = texts[start : start + 256]
            for text, read in zip(part, encoder.encode([word_texts(t.text) for t in part]), strict=True):
                if read.split_states:
                    states = read.split_states[0].half().cpu().clone()
                    found.append(Sentence(states, has_effect(text)))
    return found


class SentenceSpace(Trainee):
    """Upper layers, begun with those of the relation space, and the attention over them."""

    def __init__(
        self,
        settings: Settings,
        encoder: SplitEncoder,
        corpus: tuple[Sequence[GoldText], Sequence[GoldText]],
        folder: Path,
        device: torch.device | str = "cpu",
    ) -> None:
        """`corpus`: texts for training and for validation; `folder` holds the adapter of the relations' upper
        layers.
        """
        torch.manual_seed(settings.seed)
        self.settings, self.device = settings, torch.device(device)
        self.epochs = settings.sentence_epochs
        whole = Encoder.load(settings.base, adapter=folder / UPPER_ADAPTER)
        frozen = settings.frozen_layers(whole.model)
        train_layers(whole, frozen, linear=settings.pair_rank > 0)
        self.upper = UpperLayers(whole, frozen)
        self.head = EventHead(whole.dimension)
        self.train, self.valid = (cached(encoder, texts, settings.precision) for texts in corpus)
        groups: list[dict[str, Any]] = [
            {"params": adapter.trained_parameters(self.upper.model), "lr": settings.sentence_lr},
            {"params": adapter.trained_parameters(self.head), "lr": HEAD_LR},
        ]
        self.optimizer = torch.optim.AdamW(groups, weight_decay=WEIGHT_DECAY, fused=True)
        steps = steps_of(self.epochs, len(self.train), settings.batch)
        self.schedule = warmup_linear(self.optimizer, max(self.epochs, steps))

    def modules(self) -> Sequence[nn.Module]:
        return self.upper.model, self.head

    def epoch(self, number: int) -> dict[str, float]:
        rng = random.Random(self.settings.seed * 1000 + number)
        batches = length_batches(
            self.train, size=self.settings.batch, pool=POOL, length=lambda s: len(s.states), rng=rng
        )
        return self.one_pass(batches, self.loss, number)

    def loss(self, batch: Sequence[Sentence]) -> Tensor:
        """The cross-entropy of a batch. Gradients flow."""
        events = torch.tensor([float(s.event) for s in batch], device=self.device)
        return nn.functional.binary_cross_entropy_with_logits(self.logits(batch), events)

    def logits(self, batch: Sequence[Sentence]) -> Tensor:
        """(sentences,). Gradients flow."""
        with mixed(self.settings.precision, self.device):
            hidden = self.upper.forward_states([s.states for s in batch])
        inside = torch.zeros(hidden.shape[:2], dtype=torch.bool)
        for row, sentence in enumerate(batch):
            inside[row, 1 : len(sentence.states) - 1] = True
        logits: Tensor = self.head(hidden, inside.to(self.device))
        return logits

    def validate(self, number: int) -> dict[str, float]:
        """F1 of the sentences with an event at the best threshold, both kinds in the corpus' proportion."""
        found = np.zeros(len(self.valid))
        with torch.no_grad():
            for part in by_length([len(s.states) for s in self.valid], 64):
                found[part] = self.logits([self.valid[i] for i in part]).cpu().numpy()
        return {"sentence F1": best_f1(found, np.array([s.event for s in self.valid]))}

    def save(self, folder: Path, below: int) -> SentenceHead:
        """Writes the head as a release holds it, and gives it as it will be loaded."""
        base = Encoder.load(self.settings.base).model
        save_file(adapter.quantized(base, self.upper.model), folder / SENTENCE_ADAPTER)
        write_event_head(self.head, folder)
        place = str(self.device)
        whole = Encoder.load(self.settings.base, adapter=folder / SENTENCE_ADAPTER, device=place)
        head = read_event_head(folder, whole.dimension).head.to(self.device)
        return SentenceHead(head, UpperLayers(whole, below))


def write_event_head(head: EventHead, folder: Path) -> None:
    """Writes the head in 16 bits, as a release holds it."""
    tensors = {name: t.detach().cpu().half().contiguous() for name, t in head.state_dict().items()}
    save_file(tensors, folder / SENTENCE_HEAD)


def read_event_head(folder: Path, dimension: int) -> SentenceHead:
    """The head that was written, without upper layers of its own."""
    head = EventHead(dimension)
    tensors = read_tensors(folder / SENTENCE_HEAD)
    head.load_state_dict({name: tensor.float() for name, tensor in tensors.items()})
    return SentenceHead(head)
