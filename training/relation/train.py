"""What the training of CLNER, CLDR and CLGS has in common."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from models.encoder.model import Encoder
from models.text import word_texts
from training.common.adapter import trained_parameters
from training.common.batching import length_batches
from training.common.loop import AveragingTrainee, steps_of, warmup_linear
from training.common.precision import mixed
from training.relation.data import Example
from training.relation.network import word_states
from training.relation.settings import Settings

#: Epochs without a better score after which a run ends that averages no weights, as in the paper.
PATIENCE = 3
#: Training sentences that are the support set of an epoch's validation.
SAMPLE = 1500
#: Batches out of which sentences of similar length are put together.
POOL = 20
#: Sentences whose hidden states are in memory at once where no gradients flow.
CHUNK = 1024


class Space(AveragingTrainee):
    """An embedding space; the first of its modules are the layers of an encoder, the others are new."""

    scores_untrained = True
    train: list[Example]
    encoder: Encoder

    def __init__(self, settings: Settings, device: torch.device | str) -> None:
        super().__init__(settings.average)
        torch.manual_seed(settings.seed)
        self.settings, self.device = settings, torch.device(device)
        self.epochs, self.patience = settings.epochs, 0 if settings.average else PATIENCE

    @abstractmethod
    def loss(self, batch: Sequence[Example], generator: torch.Generator) -> Tensor:
        """The loss of a batch; `generator` draws the negatives. Gradients flow."""

    @abstractmethod
    def scores(self) -> dict[str, float]:
        """Scores of the weights as they are on the validation part."""

    def states(self, batch: Sequence[Example]) -> Tensor:
        """(words of the batch, d) of the encoder; gradients flow."""
        with mixed(self.settings.precision, self.device):
            hidden = self.encoder.forward([e.pieces for e in batch])
        return word_states(hidden, batch)

    def read(self, encoder: Encoder, data: Sequence[Example]) -> list[Tensor]:
        """(words, d) of each sentence by an encoder, in the number format of the run."""
        found: list[Tensor] = []
        with torch.no_grad(), mixed(self.settings.precision, self.device):
            for start in range(0, len(data), CHUNK):
                part = data[start : start + CHUNK]
                read = encoder.word_vectors([word_texts(e.gold.text) for e in part])
                found += [v[: len(e.tags)] for e, v in zip(part, read, strict=True)]
        return found

    def sentences(self, rng: random.Random) -> list[Example]:
        """The sentences of an epoch."""
        return self.train

    def make_optimizer(self, counted: int) -> None:
        """Once all modules are there. `counted`: how many sentences of an epoch the size of a batch counts;
        further ones are added in their proportion.
        """
        number = len(self.sentences(random.Random(0)))
        self._size = max(1, round(self.settings.batch * number / max(1, counted)))
        layers, *new = ([*trained_parameters(module)] for module in self.modules())
        groups = [
            {"params": layers, "lr": self.settings.lr},
            {"params": [p for own in new for p in own], "lr": self.settings.head_lr},
        ]
        self.optimizer = torch.optim.Adam(groups, fused=True)
        steps = max(self.epochs, steps_of(self.epochs, number, self._size))
        if self.settings.average:
            self.schedule = warmup_linear(self.optimizer, steps)
        else:
            self.schedule = torch.optim.lr_scheduler.ConstantLR(self.optimizer, 1.0)

    def epoch(self, number: int) -> dict[str, float]:
        seed = self.settings.seed * 1000 + number
        rng, generator = random.Random(seed), torch.Generator().manual_seed(seed)
        batches = length_batches(
            self.sentences(rng), size=self._size, pool=POOL, length=lambda e: len(e.pieces), rng=rng
        )
        losses = self.one_pass(batches, lambda batch: self.loss(batch, generator), number)
        self.end_epoch()
        return losses

    def validate(self, number: int = 0) -> dict[str, float]:
        """With the mean of the last epochs' weights."""
        with self.averaged():
            return self.scores()
