"""Trains CONORM-NER (CONORM, section 3.1) and writes a release: a low-rank adapter or the whole encoder, the
head, and the drug lexicon.

Phase 1 (first epoch): the head alone, lr 1e-3. Phase 2: adapter and head. Each phase has its own linear
schedule with 10 % warm-up; AdamW, cross-entropy over all pieces, gradients clipped at 1.0; the epoch with the
best strict F1 on 10 % of the training sentences is kept.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
import typer
from rich.console import Console
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import get_linear_schedule_with_warmup

from models import drugs
from models.drugs import DrugLexicon
from models.encoder.model import Encoder
from models.encoder.weights import ADAPTER, base_digest
from models.ner.decoding import tags_of
from models.ner.head import Head
from models.ner.model import NerModel
from models.releases.manifest import Release, TrainingData
from models.scores import SpanScores, strict_spans
from models.types import LABELS
from training.common import adapter
from training.common.checkpoint import Checkpoint, random_state, set_random_state
from training.common.corpora import GoldText, hold_out, read_psytar
from training.common.precision import HELP, Precision, mixed, resolved
from training.common.publish import OFFERED, offer, print_scores, publish_release
from training.common.spans import gold_spans, mention_spans
from training.evaluation.evaluate import manifest_scores
from training.evaluation.ner import ADE_TAGS, PSYTAR_TAGS, ade_part
from training.evaluation.relation import SPLITS as ADE_SPLITS
from training.evaluation.relation import split_texts
from training.ner.data import PAPER, Example, Scheme, batches, examples, loss_of

console = Console()
CITATION = "none stated, citation asked"
PSYTAR = TrainingData(name="PsyTAR (Zolnoori et al. 2019), training part", licence="CC BY 4.0")
Corpora = Literal["both", "ade", "psytar"]


@dataclass(frozen=True, slots=True)
class Settings:
    """What makes a run what it is; `make train` has what remakes the shipped release."""

    base: str = "mini"
    corpora: Corpora = "both"
    split: str = "ade_fold_1"
    """of the ADE corpus, as `training.evaluation.relation` names them"""
    epochs: int = 12
    rank: int = 16
    lr: float = 5e-4
    batch: int = 24
    seed: int = 42
    limit: int = 0
    scheme: Scheme = PAPER
    phases: int = 2
    repair: bool = True
    precision: str = "float32"
    factor: int = 0
    """With rank 0: the linear layers alone are trained, and what changed is stored as an adapter of this
    rank."""

    def plan(self) -> list[tuple[int, float, bool]]:
        """Epochs, rate and whether the encoder learns too, for each phase."""
        if self.phases == 1:
            return [(self.epochs, self.lr, True)]
        return [(1, 1e-3, False), (self.epochs - 1, self.lr, True)]


@dataclass(frozen=True, slots=True)
class Corpus:
    """One corpus' part of a run."""

    train: list[GoldText]
    valid: list[GoldText]
    labels: tuple[str, ...]
    lexicon: DrugLexicon | None


def read(data: Path, settings: Settings) -> dict[str, Corpus]:
    """Training and validation sentences; no sentence of a test part is in them."""
    corpora = {}
    if settings.corpora != "psytar":
        train, test = split_texts(data / "ade", settings.split)
        tested = {t.text for t in test}
        corpora["clinical"] = _held_out([t for t in train if t.text not in tested], settings, ADE_TAGS, None)
    if settings.corpora != "ade":
        tested = {t.text for part in ("dev", "test") for t in read_psytar(data / f"psytar/ner_{part}.conll")}
        train = [t for t in read_psytar(data / "psytar/ner_train.conll") if t.text not in tested]
        corpora["posts"] = _held_out(train, settings, PSYTAR_TAGS, DrugLexicon.load())
    return corpora


def _held_out(
    texts: list[GoldText], settings: Settings, labels: tuple[str, ...], lexicon: DrugLexicon | None
) -> Corpus:
    train, valid = hold_out(texts, 0.1, settings.seed)
    return Corpus(train[: settings.limit] if settings.limit else train, valid, labels, lexicon)


def score(model: NerModel, texts: Sequence[GoldText], labels: Sequence[str]) -> SpanScores:
    return strict_spans(mention_spans(model.predict([t.text for t in texts])), gold_spans(texts), labels)


@dataclass(slots=True)
class Epoch:
    """One line of a run's curve."""

    number: int
    loss: float
    valid: dict[str, float]
    """Corpus to strict micro F1 on its validation part."""
    seconds: float
    kept: bool = False


class Run:
    """A model in training; `fit` goes on from the last whole epoch of its folder."""

    def __init__(self, settings: Settings, data: Sequence[Example], folder: Path | None) -> None:
        torch.manual_seed(settings.seed)
        self.settings = settings
        self.rng = random.Random(settings.seed)
        self.encoder = adapter.trainable(Encoder.load(settings.base), settings.rank)
        if settings.factor:
            adapter.only_linear(self.encoder.model)
        self.head = Head(self.encoder.dimension, len(tags_of(LABELS)))
        self.best: dict[str, dict[str, Tensor]] = {}
        """The files of the kept epoch."""
        self.seconds = 0.0
        """that training and validation took, before a kill too"""
        self._moved = False
        """Phase 1 leaves the encoder as it is."""
        self._data = data
        self._learning = adapter.trained_parameters(self.encoder.model)
        self._checkpoint = Checkpoint(folder, asdict(settings))

    def fit(self, validate: Callable[[NerModel], dict[str, float]]) -> Iterator[Epoch]:
        """Yields each epoch that is trained now; those before a kill are not repeated."""
        stored = self._checkpoint.load() or {"epoch": 0, "best": -1.0}
        if stored["epoch"]:
            self._restore(stored)
        number, best = 0, stored["best"]
        for epochs, rate, encoder_learns in self.settings.plan():
            if number + epochs <= stored["epoch"]:
                number += epochs
                continue
            for parameter in self._learning:
                parameter.requires_grad_(encoder_learns)
            self._moved |= encoder_learns
            optimizer, schedule = self._optimizer(epochs, rate)
            if number < stored["epoch"]:
                optimizer.load_state_dict(stored["optimizer"])
                schedule.load_state_dict(stored["schedule"])
            for _ in range(max(0, stored["epoch"] - number), epochs):
                started = time.monotonic()
                loss = self._epoch(optimizer, schedule)
                valid = validate(
                    NerModel(self.encoder, self.head, LABELS, None, gaps_repaired=self.settings.repair)
                )
                mean = sum(valid.values()) / len(valid)
                if mean > best:
                    best, self.best = mean, self._files()
                stored["epoch"] += 1
                seconds = time.monotonic() - started
                self.seconds += seconds
                self._checkpoint.save(self._state(stored["epoch"], best, optimizer, schedule))
                yield Epoch(stored["epoch"], loss, valid, seconds, mean == best)
            number += epochs

    def _optimizer(self, epochs: int, rate: float) -> tuple[Any, Any]:
        parameters = self._parameters()
        optimizer = torch.optim.AdamW(parameters, lr=rate, fused=True)
        steps = epochs * -(-len(self._data) // self.settings.batch)
        schedule: Any = get_linear_schedule_with_warmup(optimizer, steps // 10, steps)  # type: ignore[no-untyped-call]
        return optimizer, schedule

    def _epoch(self, optimizer: Any, schedule: Any) -> float:
        """Mean loss of one pass over the data."""
        self.encoder.model.train()
        self.head.train()
        parameters, losses = self._parameters(), []
        for batch in batches(self._data, self.settings.batch, self.rng):
            with mixed(self.settings.precision):
                loss = loss_of(self.encoder, self.head, batch)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        self.encoder.model.eval()
        self.head.eval()
        return sum(losses) / len(losses)

    def _parameters(self) -> list[nn.Parameter]:
        return [p for p in (*self._learning, *self.head.parameters()) if p.requires_grad]

    def _files(self) -> dict[str, dict[str, Tensor]]:
        head = {k: v.detach().half().clone() for k, v in self.head.state_dict().items()}
        if self.settings.factor and self._moved:
            base = Encoder.load(self.settings.base).model
            pairs = adapter.factored(base, self.encoder.model, self.settings.factor)
            return {ADAPTER: pairs, "head.safetensors": head}
        if self.settings.factor:
            return {"head.safetensors": head}
        return adapter.files(self.encoder.model) | {"head.safetensors": head}

    def _state(self, epoch: int, best: float, optimizer: Any, schedule: Any) -> dict[str, Any]:
        return {
            "epoch": epoch,
            "best": best,
            "seconds": self.seconds,
            "files": self.best,
            "encoder": [p.detach().clone() for p in self._learning],
            "head": self.head.state_dict(),
            "optimizer": optimizer.state_dict(),
            "schedule": schedule.state_dict(),
            "rng": random_state(self.rng),
        }

    def _restore(self, stored: dict[str, Any]) -> None:
        with torch.no_grad():
            for parameter, value in zip(self._learning, stored["encoder"], strict=True):
                parameter.copy_(value)
        self.head.load_state_dict(stored["head"])
        self.best, self.seconds = stored["files"], stored["seconds"]
        set_random_state(self.rng, stored["rng"])


def train(corpora: dict[str, Corpus], settings: Settings, folder: Path | None) -> Run:
    """A whole run with its curve printed; `folder` keeps what a killed run needs to go on."""
    encoder, tags = Encoder.load(settings.base), tags_of(LABELS)
    data = [
        example
        for corpus in corpora.values()
        for example in examples(corpus.train, encoder, tags, corpus.lexicon, settings.scheme)
    ]
    valid = sum(len(c.valid) for c in corpora.values())
    console.print(f"{len(data)} training sentences, {valid} for validation")
    run = Run(settings, data, folder)
    for epoch in run.fit(
        lambda model: {name: score(model, c.valid, c.labels).micro.f1 for name, c in corpora.items()}
    ):
        scores = ", ".join(f"{name} {value:.4f}" for name, value in epoch.valid.items())
        console.print(
            f"epoch {epoch.number:2d}  loss {epoch.loss:.4f}  validation strict micro F1: {scores}  "
            f"{epoch.seconds:.0f} s{'  kept' if epoch.kept else ''}"
        )
    return run


CANARY = [
    "Zoloft gave me awful insomnia and night sweats, no nausea though.",
    "Intravenous azithromycin - induced ototoxicity .",
    "brain zaps since I stopped effexor, was on it for depression",
    "The weather was fine.",
]


def main(
    data: Annotated[Path, typer.Option(help="folder with psytar/ and ade/")],
    output: Annotated[Path, typer.Option(help="root of the releases")] = Path("models/pretrained"),
    base: Annotated[str, typer.Option(help="`mini`, a hub name (vinai/bertweet-large) or a path")] = "mini",
    corpora: Annotated[Corpora, typer.Option(help="what is trained on")] = "both",
    split: Annotated[str, typer.Option(help="ade_fold_1 to _10, or ade_group_1 to _10")] = "ade_fold_1",
    epochs: Annotated[int, typer.Option(help="of both phases together")] = 12,
    rank: Annotated[
        int, typer.Option(help="of the adapter; 0: the encoder's layers are trained and stored")
    ] = 16,
    factor: Annotated[
        int, typer.Option(help="with --rank 0: what changed is stored as an adapter of this rank; 0: whole")
    ] = 0,
    lr: Annotated[float, typer.Option(help="of phase 2; 3e-5 in the paper, for a far larger model")] = 5e-4,
    batch: int = 24,
    seed: int = 42,
    limit: Annotated[int, typer.Option(help="training sentences of each corpus at most; 0: all")] = 0,
    biox: Annotated[bool, typer.Option(help="ablation: BIO, pieces inside a word have its tag")] = True,
    flag: Annotated[bool, typer.Option(help="ablation: no sub-word flag")] = True,
    phases: Annotated[int, typer.Option(min=1, max=2, help="ablation: 1 trains everything at once")] = 2,
    repair: Annotated[bool, typer.Option(help="ablation: gaps are not repaired")] = True,
    precision: Annotated[Precision, typer.Option(help=HELP)] = "auto",
    run: Annotated[Path | None, typer.Option(help="folder in which a killed run goes on")] = None,
    offered: OFFERED = False,
) -> None:
    settings = Settings(
        *(base, corpora, split, epochs, rank, lr, batch, seed, limit, Scheme(biox, flag), phases, repair),
        precision=resolved(precision),
        factor=factor,
    )
    if factor and rank:
        raise typer.BadParameter("--factor is for --rank 0")
    if split not in ADE_SPLITS:
        raise typer.BadParameter(f"no split {split!r} of the ADE corpus")
    release = make(settings, data, output, run)
    print_scores(console, release)
    if offered:
        offer(release, data)


def _learned(settings: Settings) -> str:
    return "a low-rank adapter" if settings.rank or settings.factor else "a trained encoder"


def ade_corpus(split: str) -> TrainingData:
    name = f"ADE corpus v2 (Gurulingappa et al. 2012), {ade_part(split)} training part"
    return TrainingData(name=name, licence=CITATION)


def make(settings: Settings, data: Path, output: Path, run: Path | None = None) -> Release:
    """Trains, scores on the test parts of what was trained on, and writes a release under `output`."""
    parts = read(data, settings)
    trained = train(parts, settings, run)
    kept = Path(tempfile.mkdtemp(prefix="ner-"))
    for name, tensors in trained.best.items():
        save_file(tensors, kept / name)
    shutil.copyfile(drugs.BUNDLED, kept / "drugs.tsv")
    configuration: dict[str, Any] = {
        "labels": list(LABELS),
        "max_pieces": trained.encoder.max_pieces,
        "repair": settings.repair,
        "training": asdict(settings),
        "training_seconds": round(trained.seconds),
    }
    splits = {"clinical": settings.split, "posts": "psytar_test"}
    release = publish_release(
        kept,
        task="ner",
        kind="CONORM-NER head over " + _learned(settings),
        base=settings.base,
        base_sha256=base_digest(settings.base),
        configuration=configuration,
        training_data=[PSYTAR if name == "posts" else ade_corpus(settings.split) for name in parts],
        canary=CANARY,
        scores=lambda model: manifest_scores("ner", model, data, [splits[name] for name in parts]),
        root=output,
    )
    shutil.rmtree(kept)
    return release
