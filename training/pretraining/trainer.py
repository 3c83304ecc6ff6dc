"""Masked-language modelling in training (Devlin et al. 2019, section 3.1), over the texts of a domain
(Gururangan et al. 2020): all layers above the embeddings, and a head that is not kept.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import typer
from torch import Tensor, nn

from models.encoder.model import Encoder
from training.common import adapter
from training.common.batching import by_length, length_batches
from training.common.checkpoint import random_state, set_random_state
from training.common.loop import Trainee, steps_of, warmup_linear
from training.common.precision import mixed
from training.pretraining.data import Masked, masked, pieces_of
from training.pretraining.settings import Settings

#: Batches out of which texts of similar length are put together.
POOL = 20


class MaskedHead(nn.Module):
    """(pieces, dimension) to the scores of the vocabulary, (pieces, vocabulary), by the base's embeddings,
    which are not trained.
    """

    def __init__(self, embeddings: Tensor) -> None:
        super().__init__()
        vocabulary, dimension = embeddings.shape
        self.transform = nn.Sequential(nn.Linear(dimension, dimension), nn.GELU(), nn.LayerNorm(dimension))
        self.bias = nn.Parameter(torch.zeros(vocabulary))
        self.register_buffer("embeddings", embeddings.detach(), persistent=False)

    def forward(self, hidden: Tensor) -> Tensor:
        return nn.functional.linear(self.transform(hidden), torch.as_tensor(self.embeddings), self.bias)


class MaskedTrainee(Trainee):
    """An encoder that predicts hidden pieces of `texts`."""

    scores_untrained = True

    def __init__(self, settings: Settings, texts: Sequence[str], device: torch.device | str = "cpu") -> None:
        """Raises typer.BadParameter for a base without a mask token, or whose embeddings have another size
        than its hidden states (ALBERT), and for too few texts.
        """
        torch.manual_seed(settings.seed)
        self.settings, self.device, self.epochs = settings, torch.device(device), settings.epochs
        self.rng = random.Random(settings.seed)
        base = Encoder.load(settings.base)
        tokenizer = base.tokenizer
        if tokenizer.mask_token_id is None:
            raise typer.BadParameter(f"{settings.base} has no mask token")
        embeddings = base.model.get_input_embeddings().weight
        if embeddings.shape[1] != base.dimension:
            raise typer.BadParameter(f"{settings.base} has embeddings of another size than its hidden states")
        self.mask = int(tokenizer.mask_token_id)
        self.ordinary = sorted(set(range(tokenizer.vocab_size)) - set(tokenizer.all_special_ids))
        pieces = pieces_of(texts, base)
        if len(pieces) <= settings.held_out:
            raise typer.BadParameter(f"{len(pieces)} texts, of which {settings.held_out} are held out")
        self.rng.shuffle(pieces)
        self.data = pieces[settings.held_out :]
        self.validation = self._validation(pieces[: settings.held_out])
        self.encoder = adapter.trainable(base, 0)
        self.head = MaskedHead(embeddings)
        layers: dict[str, Any] = {"params": adapter.trained_parameters(self.encoder.model)}
        head = {"params": list(self.head.parameters()), "lr": settings.head_lr}
        self.optimizer = torch.optim.AdamW([layers, head], lr=settings.lr, fused=True)
        self.schedule = warmup_linear(
            self.optimizer, steps_of(settings.epochs, len(self.data), settings.batch)
        )

    def modules(self) -> Sequence[nn.Module]:
        return self.encoder.model, self.head

    def epoch(self, number: int) -> dict[str, float]:
        batches = length_batches(self.data, size=self.settings.batch, pool=POOL, length=len, rng=self.rng)
        return self.one_pass(batches, lambda batch: self._loss(self._masked(batch, self.rng)), number)

    @torch.no_grad()
    def validate(self, number: int) -> dict[str, float]:
        """The mean log-probability of a hidden piece of the validation texts, the same ones each time."""
        total = sum(self._loss(batch).item() * len(batch.targets) for batch in self.validation)
        return {"log-probability": -total / sum(len(batch.targets) for batch in self.validation)}

    def state(self) -> dict[str, Any]:
        return super().state() | {"rng": random_state(self.rng)}

    def restore(self, state: Mapping[str, Any]) -> None:
        super().restore(state)
        set_random_state(self.rng, state["rng"])

    def weights_file(self) -> dict[str, Tensor]:
        """The layers as `training.ner --pretrained` reads them, in 16 bits."""
        (tensors,) = adapter.files(self.encoder.model).values()
        return tensors

    def _validation(self, pieces: Sequence[list[int]]) -> list[Masked]:
        rng = random.Random(self.settings.seed)
        return [
            self._masked([pieces[i] for i in batch], rng)
            for batch in by_length([len(p) for p in pieces], self.settings.batch)
        ]

    def _masked(self, batch: Sequence[Sequence[int]], rng: random.Random) -> Masked:
        return masked(batch, self.settings.masked, self.mask, self.ordinary, rng)

    def _loss(self, batch: Masked) -> Tensor:
        rows, columns, targets = (t.to(self.device) for t in (batch.rows, batch.columns, batch.targets))
        with mixed(self.settings.precision, self.device):
            hidden = self.encoder.forward(batch.sequences)
            scores = self.head(hidden[rows, 1 + columns])
        return nn.functional.cross_entropy(scores.float(), targets)
