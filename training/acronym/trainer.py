"""The training of an m-network: losses, and the epoch that is kept (Seneviratne et al. 2022, sections 3 and
4).
"""

from __future__ import annotations

import copy
import math
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from rich.console import Console
from rich.progress import track
from torch import Tensor, nn

from models.acronym.acronym_encoder import Pooling, Vectors, join, means
from models.acronym.m_network import Head, HeadConfig, pad_features, vector_rows
from models.encoder.layer_split import UpperLayers, layers_of
from models.encoder.model import Encoder
from training.acronym.data import at_most, with_rivals
from training.acronym.frozen_states import Bank, Item, chunked
from training.common import adapter
from training.common.checkpoint import Checkpoint
from training.common.precision import mixed
from training.evaluation.acronym import Row, scores

console = Console()
Objective = Literal["triplet", "m", "softmax"]
Anchor = Literal["own", "other"]
#: Margins of the authors' code.
MARGINS = {"triplet": 0.5, "m": 0.4}
#: Rows of one acronym that follow each other: they share their long forms, which are then read once.
RUN = 4
KEPT_BY = "macro_f1"


@dataclass(frozen=True, slots=True)
class Settings:
    """What decides the weights that come out of a run; a run is resumed only under the same."""

    base: str
    corpora: tuple[str, ...]
    objective: Objective
    anchor: Anchor
    pooling: Pooling
    size: int
    distance: bool
    fit: bool
    alone: bool
    surface: bool
    dropout: float
    layers: int
    rank: int
    lr: float
    head_lr: float
    epochs: int
    batch: int
    rows: int
    rivals: int
    max_pieces: int
    held_out: float
    validate: int
    seed: int
    precision: str

    @property
    def shape(self) -> HeadConfig:
        return HeadConfig(self.pooling, self.size, self.distance, self.fit, self.alone, self.surface)


def loss_of(energies: Tensor, objective: Objective, margin: float) -> Tensor:
    """Mean loss of (rows, m) energies, the right long form's first, infinite where there is no candidate;
    every row has a rival.

    triplet: max(0, d(a, p) - d(a, n) + margin), over all negatives (equation 1). m: the same with the nearest
    negative alone (equation 2). softmax: cross-entropy of the right one among all (InfoNCE).
    """
    if objective == "softmax":
        return nn.functional.cross_entropy(-energies, torch.zeros(len(energies), dtype=torch.long))
    right, wrong = energies[:, :1], energies[:, 1:]
    if objective == "m":
        return (right[:, 0] - wrong.min(1).values + margin).clamp(min=0).mean()
    there = wrong.isfinite()
    return (right - wrong.masked_fill(~there, 0) + margin).clamp(min=0)[there].mean()


def upper_of(settings: Settings, encoder: Encoder) -> tuple[UpperLayers | None, Encoder]:
    """The encoder to train, and its last `layers` layers alone, which are all that is trained; None where
    nothing of it is.
    """
    if not settings.layers:
        return None, encoder
    below = below_of(settings, encoder)
    plain = copy.deepcopy(encoder.model)
    # Backwards through the fused attention takes half of a step on a processor.
    plain.set_attn_implementation("eager")
    trained = adapter.trainable(
        Encoder(plain, encoder.tokenizer, encoder.max_pieces), settings.rank, dropout=0.0
    )
    for module in trained.model.modules():
        # Drawing its numbers would take a fifth of a step; the head has its own.
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    upper = UpperLayers(trained, below)
    return upper, trained


def below_of(settings: Settings, encoder: Encoder) -> int:
    """How many layers stay as they are; raises ValueError where none would."""
    below = len(layers_of(encoder.model)) - settings.layers
    if below < 1:
        raise ValueError(f"at most {len(layers_of(encoder.model)) - 1} layers can be trained")
    return below


class Trainer:
    """An m-network, what it learns from and how far it is."""

    def __init__(self, settings: Settings, training: Sequence[Row], held_out: Sequence[Row]) -> None:
        self.settings = settings
        torch.manual_seed(settings.seed)
        rng = random.Random(settings.seed)
        base = Encoder.load(settings.base, max_pieces=settings.max_pieces)
        rows = at_most([r for r in training if len(r.senses) > 1], settings.rows, settings.seed)
        self.rows = [with_rivals(r, settings.rivals, rng) for r in rows]
        self.validation = [
            with_rivals(r, 0, rng) for r in at_most(held_out, settings.rows, settings.seed, settings.validate)
        ]
        self.bank = Bank(base, below_of(settings, base), settings.shape, settings.precision)
        self.upper, self.encoder = upper_of(settings, base)
        self.head = Head(base.dimension, settings.shape, settings.dropout)
        own = adapter.trained_parameters(self.encoder.model) if self.upper else []
        self.parameters = [*own, *self.head.parameters()]
        rates: list[dict[str, Any]] = [
            {"params": own, "lr": settings.lr},
            {"params": list(self.head.parameters())},
        ]
        self.optimizer = torch.optim.AdamW(rates[0 if own else 1 :], lr=settings.head_lr, fused=True)
        self.steps = max(1, settings.epochs * math.ceil(len(self.rows) / settings.batch))
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, self._rate)

    # A run that has ended needs none of these: they are made when they are first asked for.

    @cached_property
    def items(self) -> list[Item]:
        found = self.bank.items(self.rows)
        if self.settings.surface:
            seen = torch.tensor([f for item in found for f in item.seen])
            self.head.spread.copy_(seen.std(0).clamp(min=1e-3))
        return found

    @cached_property
    def held_out(self) -> list[Item]:
        return self.bank.items(self.validation)

    @cached_property
    def anchors(self) -> dict[int, list[int]]:
        """The anchors of each sense."""
        found: dict[int, list[int]] = {}
        for item in self.items:
            found.setdefault(item.sense, []).append(item.anchor)
        return found

    def _rate(self, step: int) -> float:
        """A tenth of the steps up, the rest down."""
        return min(1.0, 10 * (step + 1) / self.steps) * max(0.0, 1 - step / self.steps)

    def energies(self, items: Sequence[Item], anchors: Sequence[int]) -> Tensor:
        """(rows, m) of items, each with an anchor of its own; every text is encoded once."""
        texts = [n for item, a in zip(items, anchors, strict=True) for n in (a, *item.others)]
        unique = sorted(set(texts))
        chunks = chunked([len(self.bank.states[n]) for n in unique])
        parts = [self._vectors([unique[i] for i in part]) for part in chunks]
        at = {unique[i]: row for row, i in enumerate(i for part in chunks for i in part)}
        rows = torch.tensor([at[n] for n in texts])
        vectors = Vectors(*(part[rows] for part in join(parts)))
        where = vector_rows([len(item.seen) for item in items], self.settings.shape)
        seen = pad_features([item.seen for item in items]) if self.settings.surface else torch.zeros(0)
        found: Tensor = self.head(vectors, where, seen)
        return found

    def _vectors(self, numbers: Sequence[int]) -> Vectors:
        states = [self.bank.states[n] for n in numbers]
        readings = [self.bank.readings[n] for n in numbers]
        if self.upper is None:
            hidden = nn.utils.rnn.pad_sequence(states, batch_first=True)
        else:
            with mixed(self.settings.precision):
                hidden = self.upper.forward_states(states)
        return means(hidden.float(), readings)

    def epoch(self, number: int) -> float:
        """Every row once; the mean loss."""
        rng = random.Random(f"{self.settings.seed} {number}")
        order = self._order(rng)
        self._train(True)
        losses = []
        batches = range(0, len(order), self.settings.batch)
        for start in track(batches, f"epoch {number}", console=console, transient=True):
            items = [self.items[i] for i in order[start : start + self.settings.batch]]
            other = self.settings.anchor == "other"
            anchors = [rng.choice(self.anchors[i.sense]) if other else i.anchor for i in items]
            margin = MARGINS.get(self.settings.objective, 0.0)
            loss = loss_of(self.energies(items, anchors), self.settings.objective, margin)
            self.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(self.parameters, 1.0)
            self.optimizer.step()
            self.schedule.step()
            losses.append(loss.item())
        self._train(False)
        return sum(losses) / len(losses)

    def _order(self, rng: random.Random) -> list[int]:
        """Every row once, RUN rows of an acronym in turn."""
        groups: dict[str, list[int]] = {}
        for i, item in enumerate(self.items):
            groups.setdefault(item.acronym, []).append(i)
        runs = []
        for members in groups.values():
            rng.shuffle(members)
            runs += [members[i : i + RUN] for i in range(0, len(members), RUN)]
        rng.shuffle(runs)
        return [i for run in runs for i in run]

    def _train(self, on: bool) -> None:
        # Without layers to train the encoder is the one that the whole process shares.
        if self.upper is not None:
            self.encoder.model.train(on)
        self.head.train(on)

    def validate(self) -> dict[str, float]:
        """Scores on acronyms that training does not see."""
        self._train(False)
        chosen: list[str] = []
        order = np.argsort([len(self.bank.readings[i.anchor].pieces) for i in self.held_out], kind="stable")
        with torch.inference_mode():
            for start in range(0, len(order), self.settings.batch):
                part = order[start : start + self.settings.batch].tolist()
                items = [self.held_out[i] for i in part]
                best = self.energies(items, [i.anchor for i in items]).argmin(1).tolist()
                chosen += [self.validation[i].senses[b] for i, b in zip(part, best, strict=True)]
        return scores([self.validation[i] for i in order.tolist()], chosen)

    def state(self) -> dict[str, Any]:
        return {
            "weights": self.weights(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
        }

    def weights(self) -> dict[str, dict[str, Tensor]]:
        return {
            "encoder": adapter.trained_state(self.encoder.model) if self.upper else {},
            "head": {n: t.detach().clone() for n, t in self.head.state_dict().items()},
        }

    def restore(self, weights: dict[str, dict[str, Tensor]]) -> None:
        adapter.restore(self.encoder.model, weights["encoder"])
        self.head.load_state_dict(weights["head"])

    def resume(self, state: dict[str, Any]) -> None:
        self.restore(state["weights"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])


def train(trainer: Trainer, checkpoint: Checkpoint) -> None:
    """Runs what is left of the run and puts the weights of the best epoch back."""
    stored = checkpoint.load()
    if stored is None:
        console.print(
            f"{len(trainer.items)} rows, {len(trainer.held_out)} of other acronyms for validation, "
            f"{trainer.bank.megabytes():.0f} MB kept of the frozen layers",
            highlight=False,
        )
        stored = {"curve": [trainer.validate()], "kept": trainer.weights(), "best": -1.0}
    else:
        trainer.resume(stored)
    curve: list[dict[str, float]] = stored["curve"]
    for n, row in enumerate(curve):
        console.print(line(n, row), highlight=False, soft_wrap=True)
    for n in range(len(curve), trainer.settings.epochs + 1):
        started = time.monotonic()
        loss = trainer.epoch(n)
        row = trainer.validate() | {"loss": loss, "seconds": round(time.monotonic() - started)}
        curve.append(row)
        better = row[KEPT_BY] > stored["best"]
        if better:
            stored |= {"best": row[KEPT_BY], "kept": trainer.weights()}
        checkpoint.save(stored | trainer.state())
        console.print(line(n, row) + ("  kept" if better else ""), highlight=False, soft_wrap=True)
    trainer.restore(stored["kept"])


def line(epoch: int, row: dict[str, float]) -> str:
    loss = f"loss {row['loss']:.4f}  {row['seconds']:.0f} s" if "loss" in row else "untrained"
    found = f"accuracy {row['accuracy']:.4f}, macro F1 {row['macro_f1']:.4f}"
    return f"epoch {epoch:2d}  other acronyms: {found}  {loss}"
