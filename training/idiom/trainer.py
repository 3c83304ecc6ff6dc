"""The training of idiom-aware vectors: the paper's triplets, anchors beside them, and the epoch that is kept
(He et al. 2024, sections 3.1, 3.2 and 4.1).
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from pytorch_metric_learning.distances import CosineSimilarity
from pytorch_metric_learning.losses import TripletMarginLoss
from pytorch_metric_learning.miners import TripletMarginMiner
from rich.console import Console
from torch import Tensor, nn
from transformers import get_linear_schedule_with_warmup

from models.encoder.added_tokens import ExtendedEmbedding
from models.encoder.model import Encoder
from models.idiom.model import IdiomModel, Marker, add_tokens, idiom_token, with_pooling
from training.common import adapter
from training.common.checkpoint import Checkpoint
from training.common.precision import mixed
from training.evaluation.idiom import PRIMARY, STS, Pair, pair_counts, scores
from training.idiom.data import Group, Row, at_most, batches, meanings, rows, split_groups, validation_pairs

console = Console()
#: Texts of one forward pass; those of like length go together.
CHUNK = 16


@dataclass(frozen=True, slots=True)
class Settings:
    """What decides the weights that come out of a run; a run is resumed only under the same."""

    base: str
    language: str
    pooling: str
    mark: bool
    paraphrase: bool
    epochs: int
    rank: int
    layers: int
    lr: float
    token_lr: float
    batch: int
    triplet: float
    keep: float
    sentences: int
    held_out: float
    lose: float
    seed: int
    precision: str
    dropout: float = 0.05


class Triplets:
    """The paper's miner and loss on one batch, (rows, dimension) and (rows,) to a number."""

    def __init__(self, mined: float = 0.4, margin: float = 0.3) -> None:
        self.miner = TripletMarginMiner(margin=mined, type_of_triplets="all", distance=CosineSimilarity())
        # Its own reducer averages over the terms that are not zero.
        self.loss = TripletMarginLoss(margin=margin, distance=CosineSimilarity())

    def __call__(self, vectors: Tensor, labels: Tensor) -> Tensor:
        loss: Tensor = self.loss(vectors, labels, self.miner(vectors, labels))
        return loss


def vectors(encoder: Encoder, texts: Sequence[str]) -> Tensor:
    """(texts, dimension) means over each text's pieces, as `Encoder.embed` makes them, but not scaled;
    gradients flow.
    """
    pieces = _pieces(encoder, texts)
    order = sorted(range(len(pieces)), key=lambda i: len(pieces[i]))
    out: list[Tensor] = [torch.empty(0)] * len(pieces)
    for start in range(0, len(order), CHUNK):
        part = order[start : start + CHUNK]
        hidden = encoder.forward([pieces[i] for i in part])
        for row, i in enumerate(part):
            out[i] = hidden[row, : len(pieces[i]) + 2].mean(0)
    return torch.stack(out)


def moved(found: Tensor, wanted: Tensor, groups: Tensor) -> Tensor:
    """Mean squared difference between two encoders' cosines of texts of different groups, (texts, dimension)
    twice and (texts,); `wanted` are unit vectors.
    """
    unit = nn.functional.normalize(found, dim=-1)
    apart = groups.unsqueeze(0) != groups.unsqueeze(1)
    difference = (unit @ unit.T - wanted @ wanted.T)[apart]
    return difference.square().mean() if len(difference) else found.sum() * 0


def encoder_to_train(settings: Settings, meaning: Mapping[str, Sequence[str]]) -> Encoder:
    """A copy of the base with an adapter, or all weights, open in its last `layers` layers (0: in all), and
    with a token for each expression that begins as what the expression means.
    """
    encoder = adapter.trainable(Encoder.load(settings.base), settings.rank, dropout=0.0)
    frozen = encoder.model.config.num_hidden_layers - settings.layers if settings.layers else 0
    for name, parameter in encoder.model.named_parameters():
        if any(f".layer.{n}." in name for n in range(frozen)) or (frozen and ".embeddings." in f".{name}"):
            parameter.requires_grad_(False)
    if meaning:
        texts = [found if found and settings.paraphrase else [e] for e, found in meaning.items()]
        add_tokens(encoder, [idiom_token(e) for e in meaning], mean_rows(encoder, texts))
    for module in encoder.model.modules():
        if isinstance(module, nn.Dropout) and module.p:
            module.p = settings.dropout
    return with_pooling(encoder, settings.pooling)


def mean_rows(encoder: Encoder, texts: Sequence[Sequence[str]]) -> Tensor:
    """(tokens, dimension): for each token the mean over its texts of the mean of a text's pieces."""
    weight = encoder.model.get_input_embeddings().weight.detach()
    return torch.stack([torch.stack([weight[p].mean(0) for p in _pieces(encoder, t)]).mean(0) for t in texts])


def _pieces(encoder: Encoder, texts: Sequence[str]) -> list[list[int]]:
    limit = encoder.max_pieces - 2
    encoded = encoder.tokenizer(
        list(texts), add_special_tokens=False, return_attention_mask=False, verbose=False
    )
    return [ids[:limit] for ids in encoded["input_ids"]]


class Trainer:
    """An encoder, what it learns from and how far it is."""

    def __init__(self, settings: Settings, groups: Sequence[Group], sts: Sequence[Pair]) -> None:
        self.settings = settings
        self.seconds = 0.0
        """that training and validation took, once a run is over"""
        torch.manual_seed(settings.seed)
        training, held_out = split_groups(groups, settings.held_out, settings.seed)
        training = at_most(training, settings.sentences)
        self.validation = [*validation_pairs(at_most(held_out, 2 * settings.sentences)), *sts]
        self.marker = Marker(sorted({g.expression for g in training}) if settings.mark else [])
        self.data = rows(training, self.marker)
        self.encoder = encoder_to_train(settings, meanings(training, self.marker))
        self.targets = self._targets() if settings.keep else {}
        self.parameters = adapter.trained_parameters(self.encoder.model)
        # A token is met in one sentence in the worst case: its row must learn faster than what all share.
        own = [m.rows for m in self.encoder.model.modules() if isinstance(m, ExtendedEmbedding)]
        shared = [p for p in self.parameters if all(p is not row for row in own)]
        rates: list[dict[str, Any]] = [
            {"params": shared},
            {"params": own, "lr": settings.token_lr, "weight_decay": 0.0},
        ]
        self.optimizer = torch.optim.AdamW(rates, lr=settings.lr, fused=True)
        steps = settings.epochs * math.ceil(len(self.data) / settings.batch)
        self.schedule = get_linear_schedule_with_warmup(self.optimizer, steps // 10, steps)  # type: ignore[no-untyped-call]
        self.triplets = Triplets()

    def _targets(self) -> dict[str, Tensor]:
        """Every paraphrase with its unit vector by the untrained encoder."""
        literal = list(dict.fromkeys(row.text for row in self.data if not row.idiom))
        return dict(zip(literal, self.model().untrained().predict(literal), strict=True))

    def model(self) -> IdiomModel:
        """As a release would have it, but for the rounding of its weights."""
        return IdiomModel(self.encoder, self.marker, self.settings.base, self.settings.pooling)

    def loss(self, batch: Sequence[Row]) -> Tensor:
        """The losses of a batch, each with its weight."""
        weights = self.settings
        with mixed(weights.precision):
            found = vectors(self.encoder, [row.text for row in batch])
        loss = 0 * found.sum()
        if weights.triplet:
            labels = torch.tensor([row.label for row in batch])
            loss = loss + weights.triplet * self.triplets(found, labels)
        literal = [i for i, row in enumerate(batch) if not row.idiom]
        if weights.keep and literal:
            wanted = torch.stack([self.targets[batch[i].text] for i in literal])
            groups = torch.tensor([batch[i].group for i in literal])
            loss = loss + weights.keep * moved(found[literal], wanted, groups)
        return loss

    def epoch(self) -> float:
        """Every batch once, in the order of the file; the mean loss."""
        self.encoder.model.train()
        losses = []
        for batch in batches(self.data, self.settings.batch):
            loss = self.loss(batch)
            self.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(self.parameters, 1.0)
            self.optimizer.step()
            self.schedule.step()
            losses.append(loss.item())
        self.encoder.model.eval()
        return sum(losses) / len(losses)

    def validate(self) -> dict[str, float]:
        """Spearman on the held-out expressions and on the STS pairs that training may look at."""
        return scores(pair_counts(self.model(), self.validation))

    def state(self) -> dict[str, Any]:
        return {
            "weights": adapter.trained_state(self.encoder.model),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        adapter.restore(self.encoder.model, state["weights"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])


def train(trainer: Trainer, checkpoint: Checkpoint) -> dict[str, Tensor] | None:
    """Runs what is left of the run; the weights of the epoch that is kept, None where every one lost too much
    or won nothing.
    """
    settings = trainer.settings
    stored = checkpoint.load()
    if stored is None:
        start = trainer.validate()
        # Tokens that begin as paraphrases are something before anything is trained.
        kept = adapter.trained_state(trainer.encoder.model) if settings.mark and settings.paraphrase else None
        stored = {"curve": [start], "kept": kept, "best": start[PRIMARY]}
    else:
        trainer.restore(stored)
    curve: list[dict[str, float]] = stored["curve"]
    for n, row in enumerate(curve):
        console.print(line(n, row), highlight=False, soft_wrap=True)
    for n in range(len(curve), settings.epochs + 1):
        started = time.monotonic()
        loss = trainer.epoch()
        row = trainer.validate() | {"loss": loss, "seconds": round(time.monotonic() - started)}
        curve.append(row)
        note = ""
        if curve[0][STS] - row[STS] > settings.lose:
            note = "  loses too much STS"
        elif row[PRIMARY] > stored["best"]:
            stored |= {"best": row[PRIMARY], "kept": adapter.trained_state(trainer.encoder.model)}
            note = "  kept"
        checkpoint.save(stored | trainer.state())
        console.print(line(n, row) + note, highlight=False, soft_wrap=True)
    trainer.seconds = sum(row.get("seconds", 0) for row in curve)
    best: dict[str, Tensor] | None = stored["kept"]
    return best


def line(epoch: int, row: dict[str, float]) -> str:
    loss = f"loss {row['loss']:.4f}  {row['seconds']:.0f} s" if "loss" in row else "untrained"
    return f"epoch {epoch:2d}  validation Spearman: idiom {row[PRIMARY]:.4f}, STS {row[STS]:.4f}  {loss}"
