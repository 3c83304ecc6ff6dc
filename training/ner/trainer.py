"""CONORM-NER in training (CONORM, section 3.1): a tagging head over an encoder, in two phases.

Each phase has its own AdamW and its own linear schedule with 10 % warm-up; the loss is the cross-entropy over
all pieces; the epoch with the best strict F1 on the validation part is kept.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from models.encoder.model import Encoder
from models.encoder.weights import ADAPTER
from models.ner.decoding import Floats, tags_of
from models.ner.head import Head
from models.ner.model import TRANSITIONS, NerModel
from models.types import LABELS
from training.common import adapter
from training.common.batching import length_batches
from training.common.checkpoint import random_state, set_random_state
from training.common.loop import Trainee, steps_of, warmup_linear
from training.common.precision import mixed
from training.ner.data import Example, loss_of
from training.ner.settings import Phase, Settings, phases_of

HEAD = "head.safetensors"
#: Batches out of which sentences of like length are put together.
POOL = 20


class TaggerTrainee(Trainee):
    """An encoder and a tagging head, trained on `data`."""

    def __init__(
        self,
        settings: Settings,
        data: Sequence[Example],
        score: Callable[[NerModel], dict[str, float]],
        device: torch.device | str = "cpu",
        transitions: Floats | None = None,
    ) -> None:
        """`score`: corpus to strict micro F1 on its validation part, of the model as it would be served, with
        `transitions` where it decodes whole sentences.
        """
        torch.manual_seed(settings.seed)
        self.settings, self.data, self.device = settings, data, torch.device(device)
        self.epochs = settings.epochs
        self.rng = random.Random(settings.seed)
        self.encoder = adapter.trainable(Encoder.load(settings.base), settings.rank)
        if settings.factor:
            adapter.only_linear(self.encoder.model)
        self.head = Head(self.encoder.dimension, len(tags_of(LABELS)))
        self._score, self.transitions = score, transitions
        self._encoder_parameters = adapter.trained_parameters(self.encoder.model)
        self._phase: Phase | None = None

    def modules(self) -> Sequence[nn.Module]:
        return self.encoder.model, self.head

    def prepare(self, number: int) -> None:
        phase = next(p for p in reversed(phases_of(self.settings)) if p.first <= number)
        if phase == self._phase:
            return
        self._phase = phase
        parameters = [*(self._encoder_parameters if phase.encoder else []), *self.head.parameters()]
        self.optimizer = torch.optim.AdamW(parameters, lr=phase.lr, fused=True)
        steps = steps_of(phase.epochs, len(self.data), self.settings.batch)
        self.schedule = warmup_linear(self.optimizer, steps)

    def epoch(self, number: int) -> dict[str, float]:
        assert self._phase is not None
        batches = length_batches(
            self.data, size=self.settings.batch, pool=POOL, length=lambda e: len(e.pieces), rng=self.rng
        )
        self._freeze_encoder(not self._phase.encoder)
        losses = self.one_pass(batches, self._loss, number)
        self._freeze_encoder(False)
        return losses

    def validate(self, number: int) -> dict[str, float]:
        """The mean over the corpora first, then each corpus."""
        repaired, transitions = self.settings.repair, self.transitions
        scores = self._score(
            NerModel(self.encoder, self.head, LABELS, None, gaps_repaired=repaired, transitions=transitions)
        )
        return {"strict micro F1": sum(scores.values()) / len(scores)} | scores

    def state(self) -> dict[str, Any]:
        return super().state() | {"rng": random_state(self.rng)}

    def restore(self, state: Mapping[str, Any]) -> None:
        super().restore(state)
        set_random_state(self.rng, state["rng"])

    def release_files(self) -> dict[str, dict[str, Tensor]]:
        """What a release holds of the model as it is now: file name to tensors, in 16 bits."""
        head = {HEAD: {k: v.detach().half().cpu().clone() for k, v in self.head.state_dict().items()}}
        if self.transitions is not None:
            head[TRANSITIONS] = {"transitions": torch.from_numpy(self.transitions)}
        if not self.settings.factor:
            return adapter.files(self.encoder.model) | head
        base = Encoder.load(self.settings.base).model
        if adapter.unchanged(base, self.encoder.model):
            return head
        return {ADAPTER: adapter.factored(base, self.encoder.model, self.settings.factor)} | head

    def _loss(self, batch: Sequence[Example]) -> Tensor:
        with mixed(self.settings.precision, self.device):
            return loss_of(self.encoder, self.head, batch)

    def _freeze_encoder(self, frozen: bool) -> None:
        for parameter in self._encoder_parameters:
            parameter.requires_grad_(not frozen)
