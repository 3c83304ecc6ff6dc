"""Entity-driven contrastive learning: L = L_ce + L_scl + L_hcl over a momentum key encoder (ECL, Eq. 2 to
7).
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import get_linear_schedule_with_warmup

from models.summarization.medical_entities import Entity
from training.common import adapter
from training.common.checkpoint import Checkpoint, CheckpointError, random_state, set_random_state
from training.common.precision import mixed
from training.summarization.data import Pair, normalised
from training.summarization.messages import message
from training.summarization.negatives import EntityDictionary, Shared, hard_negatives, swapped
from training.summarization.network import KeyEncoder, Network, pooled


@dataclass(frozen=True, slots=True)
class Stage:
    """Part of a run: so many epochs over some pairs, with or without the contrastive losses."""

    name: str
    epochs: int
    lr: float
    contrastive: bool
    told: float = 0.0
    """share of the pairs whose question stands in a patient's message, each time another one"""
    replay: int = 0
    """pairs of the first stage in each epoch, others each time, told as they were there"""


@dataclass(frozen=True, slots=True)
class Settings:
    """What makes a run what it is, but for its data."""

    stages: tuple[Stage, ...]
    batch: int = 16
    smoothing: float = 0.1
    simple: float = 1.0
    """weight of the loss over other summaries; 0: ECL-s of Table 5"""
    hard: float = 1.0
    """weight of the loss over replaced entities; 0: ECL-h"""
    negatives: int = 16
    """hard ones of a question"""
    queue: int = 4096
    temperature: float = 0.07
    momentum: float = 0.999
    positive: bool = False
    """the right summary stands in the denominator too, as in MoCo; Eq. 5 and 6 leave it out"""
    swap: float = 0.5
    """share of the pairs that are asked about other entities, each time anew"""
    seed: int = 42
    precision: str = "float32"
    architecture: Mapping[str, Any] = field(default_factory=dict)
    """what the network was made with, so that a run goes on only with the same"""


@dataclass(frozen=True, slots=True)
class Task:
    """What a run learns from besides its pairs."""

    pairs: Mapping[str, Sequence[Pair]]
    """of each stage, by its name"""
    entities: Mapping[str, Sequence[Entity]]
    """pair id to the entities of its summary"""
    dictionary: EntityDictionary
    shared: Mapping[str, Sequence[Shared]]
    names: Mapping[bool, Sequence[str]]
    """drugs (True) and others, by which entities are replaced"""
    sentences: Sequence[str] = ()
    """of patients, for the messages"""


class Asked(NamedTuple):
    """A pair as it is learnt from this time, with the entities of its summary."""

    pair: Pair
    entities: Sequence[Entity]


def contrast(query: Tensor, right: Tensor, wrong: Tensor, allowed: Tensor, temperature: float) -> Tensor:
    """Eq. 5 and 6, mean over the questions that have a negative; 0 where none has.

    `query`, `right` (batch, dimension), `wrong` (n, dimension) or (batch, n, dimension), all unit vectors;
    `allowed` (batch, n).
    """
    near = (query * right).sum(-1) / temperature
    far = torch.einsum("bd,bnd->bn" if wrong.ndim == 3 else "bd,nd->bn", query, wrong) / temperature  # noqa: PLR2004
    some = allowed.any(-1)
    if not bool(some.any()):
        return query.sum() * 0
    far = far.masked_fill(~allowed, -torch.inf)[some]
    return (far.logsumexp(-1) - near[some]).mean()


class Queue:
    """The keys of earlier summaries, oldest out first, each with the number of its summary."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.keys = torch.empty(0)
        self.owners = torch.empty(0, dtype=torch.long)

    def put(self, keys: Tensor, owners: Tensor) -> None:
        self.keys = torch.cat([self.keys.view(-1, keys.shape[1]), keys])[-self.length :]
        self.owners = torch.cat([self.owners, owners])[-self.length :]


@dataclass(slots=True)
class Epoch:
    """One line of a run's curve."""

    number: int
    stage: str
    losses: dict[str, float]
    score: float | None
    seconds: float
    kept: bool = False


class Trainer:
    """A network in training; `fit` goes on from the last whole epoch of its folder."""

    def __init__(self, network: Network, settings: Settings, task: Task, folder: Path | None) -> None:
        torch.manual_seed(settings.seed)
        self.network, self.settings, self.task = network, settings, task
        self.rng = random.Random(settings.seed)
        self.parameters = [p for part in network.parts() for p in part.parameters() if p.requires_grad]
        self.keys: KeyEncoder | None = None
        self.queue = Queue(settings.queue)
        self.best: list[dict[str, Tensor]] = []
        #: Settings of the run whose weights this one began with, and in them those of the one before.
        self.start: dict[str, Any] | None = None
        self._checkpoint = Checkpoint(folder, _plain(settings))
        self._owner: dict[str, int] = {}

    def fit(self, validate: Callable[[], float] | None) -> Iterator[Epoch]:
        """Yields each epoch that is trained now. Epochs of the last stage are scored by `validate` and the
        best is kept; without it the last one is.
        """
        stored = self._checkpoint.load() or {"epoch": 0, "best": -1.0}
        if stored["epoch"]:
            self._restore(stored)
        before, best = 0, stored["best"]
        for stage in self.settings.stages:
            first = max(0, stored["epoch"] - before)
            before += stage.epochs
            if first >= stage.epochs:
                continue
            optimizer, schedule = self._optimizer(stage)
            if first:
                optimizer.load_state_dict(stored["optimizer"])
                schedule.load_state_dict(stored["schedule"])
            last = stage is self.settings.stages[-1]
            for n in range(first, stage.epochs):
                started = time.monotonic()
                losses = self.epoch(stage, optimizer, schedule)
                score = validate() if validate and last else None
                ended = n == stage.epochs - 1 and last
                kept = score > best if score is not None else ended
                if kept:
                    best = score if score is not None else best
                    self.best = [adapter.trained_state(part) for part in self.network.parts()]
                number = before - stage.epochs + n + 1
                self._checkpoint.save(self._state(number, best, optimizer, schedule))
                yield Epoch(number, stage.name, losses, score, time.monotonic() - started, kept)

    def start_as(self, folder: Path) -> None:
        """Takes over the weights of another run's last whole epoch, of a network of the same kind: a first
        stage need not be trained again. Raises CheckpointError where there is none.
        """
        path = folder / "checkpoint.pt"
        if not path.exists():
            raise CheckpointError(f"{folder} holds no run")
        stored = torch.load(path, weights_only=True)
        for part, state in zip(self.network.parts(), stored["state"]["weights"], strict=True):
            adapter.restore(part, state)
        state = stored["state"]
        earlier = {"start": state["start"]} if state.get("start") else {}
        self.start = {**stored["settings"], "epochs": state["epoch"], **earlier}

    def keep_best(self) -> None:
        """Puts the kept epoch's weights back."""
        for part, state in zip(self.network.parts(), self.best, strict=True):
            adapter.restore(part, state)

    def epoch(self, stage: Stage, optimizer: Any, schedule: Any) -> dict[str, float]:
        """Mean losses by name of one pass over the pairs of a stage."""
        sums: dict[str, float] = {}
        decoders = [m for part in self.network.parts()[-1:] for m in part.modules()]
        for module in decoders:
            module.training = True
        steps = 0
        asked = [self._asked(pair, stage.told) for pair in self.task.pairs[stage.name]]
        if stage.replay:
            first = self.settings.stages[0]
            earlier = self.task.pairs[first.name]
            drawn = self.rng.sample(earlier, min(stage.replay, len(earlier)))
            asked += [self._asked(pair, first.told) for pair in drawn]
        for batch in batches(asked, self.settings.batch, self.rng):
            with mixed(self.settings.precision):
                losses = self.losses(batch, stage.contrastive)
            total = torch.stack(list(losses.values())).sum()
            optimizer.zero_grad()
            total.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(self.parameters, 1.0)
            optimizer.step()
            schedule.step()
            if self.keys is not None:
                self.keys.follow(self.network.encoder_state(), self.settings.momentum)
            steps += 1
            for name, value in losses.items():
                sums[name] = sums.get(name, 0.0) + value.item()
        for module in decoders:
            module.training = False
        return {name: value / steps for name, value in sums.items()}

    def losses(self, batch: Sequence[Asked], contrastive: bool) -> dict[str, Tensor]:
        """Each loss with its weight, by name; those whose weight is 0 are not computed."""
        s = self.settings
        asked, entities = zip(*batch, strict=True)
        read = self.network.read([p.question for p in asked])
        found = {"ce": self.network.cross_entropy(read, [p.summary for p in asked], s.smoothing)}
        if not contrastive or not (s.simple or s.hard):
            return found
        if self.keys is None:
            self.keys = self.network.key_encoder()
        query, right = pooled(read), self.keys([p.summary for p in asked])
        if s.simple:
            found["simple"] = s.simple * self._simple(query, right, asked)
        if s.hard:
            found["hard"] = s.hard * self._hard(query, right, asked, entities)
        return found

    def _asked(self, pair: Pair, told: float) -> Asked:
        """A pair, now and then about other things or in a message."""
        entities = self.task.entities.get(pair.id, ())
        shared = self.task.shared.get(pair.id)
        if shared and self.rng.random() < self.settings.swap:
            pair, entities = swapped(pair, shared, self.task.names, self.rng)
        if told and self.rng.random() < told:
            pair = message(pair, entities, self.task.sentences, self.rng)
        return Asked(pair, entities)

    def _simple(self, query: Tensor, right: Tensor, asked: Sequence[Pair]) -> Tensor:
        """Eq. 5: the queue, with this batch in it, less the keys of the question's own summary."""
        owners = torch.tensor([self._number(p.summary) for p in asked])
        self.queue.put(right, owners)
        allowed = owners.unsqueeze(1) != self.queue.owners.unsqueeze(0)
        return self._contrast(query, right, self.queue.keys, allowed)

    def _hard(
        self, query: Tensor, right: Tensor, asked: Sequence[Pair], entities: Sequence[Sequence[Entity]]
    ) -> Tensor:
        """Eq. 6: each question against its own replaced summaries alone; they never enter the queue."""
        assert self.keys is not None
        n = self.settings.negatives
        wrong = [
            hard_negatives(p.summary, own, self.task.dictionary, n, self.rng)
            for p, own in zip(asked, entities, strict=True)
        ]
        flat = [text for texts in wrong for text in texts]
        allowed = torch.arange(n).unsqueeze(0) < torch.tensor([len(w) for w in wrong]).unsqueeze(1)
        vectors = torch.zeros(len(asked), n, query.shape[1])
        if flat:
            vectors[allowed] = self.keys(flat).to(vectors.dtype)
        return self._contrast(query, right, vectors, allowed)

    def _contrast(self, query: Tensor, right: Tensor, wrong: Tensor, allowed: Tensor) -> Tensor:
        if self.settings.positive:
            each = right.unsqueeze(1)
            wrong = wrong.expand(len(query), -1, -1) if wrong.ndim == 2 else wrong  # noqa: PLR2004  (n, d)
            some = allowed.any(-1, keepdim=True)
            wrong, allowed = torch.cat([each, wrong], 1), torch.cat([some, allowed], 1)
        return contrast(query, right, wrong, allowed, self.settings.temperature)

    def _number(self, summary: str) -> int:
        return self._owner.setdefault(normalised(summary), len(self._owner))

    def _optimizer(self, stage: Stage) -> tuple[Any, Any]:
        optimizer = torch.optim.AdamW(self.parameters, lr=stage.lr, fused=True)
        replayed = min(stage.replay, len(self.task.pairs[self.settings.stages[0].name]))
        steps = stage.epochs * -(-(len(self.task.pairs[stage.name]) + replayed) // self.settings.batch)
        schedule: Any = get_linear_schedule_with_warmup(optimizer, steps // 10, steps)  # type: ignore[no-untyped-call]
        return optimizer, schedule

    def _state(self, epoch: int, best: float, optimizer: Any, schedule: Any) -> dict[str, Any]:
        keys = [p.detach().clone() for p in self._followers()]
        return {
            "epoch": epoch,
            "start": self.start,
            "best": best,
            "kept": self.best,
            "weights": [adapter.trained_state(part) for part in self.network.parts()],
            "keys": keys,
            "queue": [self.queue.keys, self.queue.owners],
            "owners": self._owner,
            "optimizer": optimizer.state_dict(),
            "schedule": schedule.state_dict(),
            "rng": random_state(self.rng),
        }

    def _restore(self, stored: dict[str, Any]) -> None:
        self.start = stored.get("start", self.start)
        for part, state in zip(self.network.parts(), stored["weights"], strict=True):
            adapter.restore(part, state)
        if stored["keys"]:
            self.keys = self.network.key_encoder()
            with torch.no_grad():
                for parameter, value in zip(self._followers(), stored["keys"], strict=True):
                    parameter.copy_(value)
        self.queue.keys, self.queue.owners = stored["queue"]
        self._owner, self.best = stored["owners"], stored["kept"]
        set_random_state(self.rng, stored["rng"])

    def _followers(self) -> list[Tensor]:
        """The key encoder's tensors that are not for ever those of the encoder."""
        if self.keys is None:
            return []
        trained = self.network.encoder_state()
        return [p for name, p in self.keys.model.named_parameters() if name in trained]


def batches(asked: Sequence[Asked], size: int, rng: random.Random) -> Iterator[list[Asked]]:
    """Every pair once, in random order, questions of like length together."""
    order = list(asked)
    rng.shuffle(order)
    chunks = []
    for start in range(0, len(order), 8 * size):
        part = sorted(order[start : start + 8 * size], key=lambda a: len(a.pair.question))
        chunks += [part[i : i + size] for i in range(0, len(part), size)]
    rng.shuffle(chunks)
    yield from chunks


def _plain(settings: Settings) -> dict[str, Any]:
    plain = asdict(settings)
    plain["stages"] = [asdict(stage) for stage in settings.stages]
    return plain
