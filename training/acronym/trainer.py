"""The m-network in training (Seneviratne et al. 2022, sections 3 and 4): a head over frozen layers and, where
asked for, trained upper layers. The epoch with the best macro F1 on held-out acronyms is kept.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import torch
from rich.console import Console
from torch import Tensor, nn

from models.acronym.acronym_encoder import Vectors, join, means
from models.acronym.m_network import Head, VectorRows, pad_features, vector_rows
from models.encoder.model import Encoder
from models.encoder.split.layer_split import UpperLayers
from models.encoder.split.layers import Layers
from training.acronym.data import right_first, sample_rows, sample_validation
from training.acronym.frozen_states import Example, StateCache, chunked
from training.acronym.losses import loss_of
from training.acronym.settings import Settings
from training.common import adapter
from training.common.batching import by_length
from training.common.loop import Trainee, steps_of
from training.common.precision import mixed
from training.evaluation.acronym import Row, scores

console = Console()
#: Rows of one acronym that follow each other: they share long forms, which are then encoded once.
RUN = 4
#: The validation score that decides which epoch is kept.
DECIDING = "macro_f1"


class EncodedExamples(NamedTuple):
    """The examples of a run."""

    training: list[Example]
    validation: list[Example]


class AcronymTrainee(Trainee):
    """A head and, where `settings.layers` is not 0, the upper layers of an encoder."""

    scores_untrained = True
    keeps_untrained = True

    def __init__(
        self,
        settings: Settings,
        training: Sequence[Row],
        held_out: Sequence[Sequence[Row]],
        device: torch.device | str = "cpu",
    ) -> None:
        """`held_out`: of each corpus rows of other acronyms than those of `training`."""
        torch.manual_seed(settings.seed)
        self.settings, self.device, self.epochs = settings, torch.device(device), settings.epochs
        base = Encoder.load(settings.base, max_pieces=settings.max_pieces)
        rows = sample_rows([r for r in training if len(r.senses) > 1], settings.rows, settings.seed)
        self.rows = [right_first(r) for r in rows]
        ambiguous = [[r for r in rows if len(r.senses) > 1] for rows in held_out]
        validation = sample_validation(ambiguous, settings.rows, settings.seed, settings.validate)
        self.validation = [right_first(r) for r in validation]
        below = frozen_layers(settings, base)
        self.cache = StateCache(base, below, settings.shape, settings.precision, self.device)
        self.upper = upper_layers(settings, base)
        self.head = Head(base.dimension, settings.shape, shared_dropout=settings.shared_dropout)
        self.optimizer = torch.optim.AdamW(self._rates(), lr=settings.head_lr, fused=True)
        steps = max(1, steps_of(settings.epochs, len(self.rows), settings.batch))
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: rate(step, steps))

    def _rates(self) -> list[dict[str, Any]]:
        """Parameter groups with their learning rates."""
        groups: list[dict[str, Any]] = [{"params": list(self.head.parameters())}]
        if self.upper is not None:
            own = adapter.trained_parameters(self.upper.model)
            groups.insert(0, {"params": own, "lr": self.settings.lr})
        return groups

    def modules(self) -> Sequence[nn.Module]:
        return (self.head,) if self.upper is None else (self.upper.model, self.head)

    @cached_property
    def parts(self) -> EncodedExamples:
        """Computed on first use: a finished run does not need the hidden states. Sets the scale of the
        surface features, so that it must be used before the first answer.
        """
        parts = EncodedExamples(self.cache.examples(self.rows), self.cache.examples(self.validation))
        if self.settings.shape.surface_features:
            features = torch.tensor([f for example in parts.training for f in example.features])
            self.head.spread.copy_(features.std(0).clamp(min=1e-3))
        console.print(
            f"{len(parts.training)} rows, {len(parts.validation)} of other acronyms for validation, "
            f"{self.cache.megabytes():.0f} MB of hidden states",
            highlight=False,
        )
        return parts

    @cached_property
    def anchors(self) -> dict[int, list[int]]:
        """The anchors of each sense."""
        anchors: dict[int, list[int]] = {}
        for example in self.parts.training:
            anchors.setdefault(example.sense, []).append(example.anchor)
        return anchors

    def epoch(self, number: int) -> dict[str, float]:
        rng = random.Random(f"{self.settings.seed} {number}")
        order, size = self.order(rng), self.settings.batch
        batches = [order[start : start + size] for start in range(0, len(order), size)]
        return self.one_pass(batches, lambda batch: self._loss(batch, rng), number)

    def order(self, rng: random.Random) -> list[int]:
        """The index of every row once, RUN rows of an acronym one after the other."""
        groups: dict[str, list[int]] = {}
        for i, example in enumerate(self.parts.training):
            groups.setdefault(example.acronym, []).append(i)
        runs = []
        for members in groups.values():
            rng.shuffle(members)
            runs += [members[i : i + RUN] for i in range(0, len(members), RUN)]
        rng.shuffle(runs)
        return [i for run in runs for i in run]

    def _loss(self, batch: Sequence[int], rng: random.Random) -> Tensor:
        examples = [self.parts.training[i] for i in batch]
        anchors = [e.anchor for e in examples]
        if self.settings.shape.distance:
            anchors = [rng.choice(self.anchors[e.sense]) for e in examples]
        return loss_of(self.energies(examples, anchors), self.settings.objective)

    def energies(self, examples: Sequence[Example], anchors: Sequence[int]) -> Tensor:
        """(rows, m) energies of examples, `anchors` in the place of their own; each text is encoded once."""
        texts = [n for e, anchor in zip(examples, anchors, strict=True) for n in (anchor, *e.others)]
        unique = sorted(set(texts))
        chunks = chunked([len(self.cache.states[n]) for n in unique])
        parts = [self._vectors([unique[i] for i in chunk]) for chunk in chunks]
        row_of = {unique[i]: row for row, i in enumerate(i for chunk in chunks for i in chunk)}
        rows = torch.tensor([row_of[n] for n in texts], device=self.device)
        vectors = Vectors(*(part[rows] for part in join(parts)))
        at = vector_rows([len(e.features) for e in examples], self.settings.shape)
        at = VectorRows(*(part.to(self.device) for part in at))
        features = (
            pad_features([e.features for e in examples])
            if self.settings.shape.surface_features
            else torch.zeros(0)
        )
        energies: Tensor = self.head(vectors, at, features.to(self.device))
        return energies

    def _vectors(self, numbers: Sequence[int]) -> Vectors:
        """Means over the pieces of texts, given by their numbers in the cache."""
        states = [self.cache.states[n] for n in numbers]
        readings = [self.cache.readings[n] for n in numbers]
        if self.upper is None:
            hidden = nn.utils.rnn.pad_sequence(states, batch_first=True).to(self.device)
        else:
            with mixed(self.settings.precision, self.device):
                hidden = self.upper.forward_states(states)
        return means(hidden.float(), readings)

    def validate(self, number: int) -> dict[str, float]:
        """Scores on acronyms that are not in training."""
        examples = self.parts.validation
        self.training(False)
        rows: list[Row] = []
        chosen: list[str] = []
        lengths = [len(self.cache.readings[e.anchor].pieces) for e in examples]
        with torch.inference_mode():
            for batch in by_length(lengths, self.settings.batch):
                part = [examples[i] for i in batch]
                best = self.energies(part, [e.anchor for e in part]).argmin(1).tolist()
                rows += [self.validation[i] for i in batch]
                chosen += [self.validation[i].senses[b] for i, b in zip(batch, best, strict=True)]
        values = scores(rows, chosen)
        return {DECIDING: values[DECIDING]} | values

    def state(self) -> dict[str, Any]:
        return super().state() | {"feature_spread": self.head.spread.cpu()}

    def restore(self, state: Mapping[str, Any]) -> None:
        super().restore(state)
        self.head.spread.copy_(state["feature_spread"])


def frozen_layers(settings: Settings, encoder: Encoder) -> int:
    """The number of layers that are not trained; raises ValueError where there would be none."""
    layers = Layers(encoder.model).number
    if settings.layers >= layers:
        raise ValueError(f"at most {layers - 1} layers can be trained")
    return layers - settings.layers


def upper_layers(settings: Settings, encoder: Encoder) -> UpperLayers | None:
    """The last `layers` layers of a copy of the encoder, ready to be trained; None where that is 0."""
    if not settings.layers:
        return None
    plain = copy.deepcopy(encoder.model)
    # The backward pass of the fused attention takes half of a step on a CPU.
    plain.set_attn_implementation("eager")
    trained = adapter.trainable(
        Encoder(plain, encoder.tokenizer, encoder.max_pieces), settings.rank, dropout=0.0
    )
    for module in trained.model.modules():
        # Drawing its random numbers would take a fifth of a step; the head has a dropout of its own.
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return UpperLayers(trained, frozen_layers(settings, encoder))


def rate(step: int, steps: int) -> float:
    """The share of the learning rate: rises over a tenth of the steps, falls to 0 over all of them."""
    return min(1.0, 10 * (step + 1) / steps) * max(0.0, 1 - step / steps)
