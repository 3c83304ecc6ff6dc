"""The task of normalization, as recipes run it: S_isolated learns lay phrases, or S_context sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from torch import Tensor

from models import terminology
from models.encoder.base_files import base_digest
from models.encoder.capabilities import Need
from models.encoder.model import Encoder
from models.encoder.weights import ADAPTER
from models.normalization.context_refining import ISOLATED
from models.normalization.model import NormalizationModel
from models.normalization.packed_vectors import PackedVectors
from models.normalization.patient_phrases import Phrases
from models.releases.manifest import Release, TrainingData
from models.releases.store import open_release
from models.releases.tensors import read_tensors
from models.terminology import Term
from training.common.checkpoint import digest_of
from training.common.codings.ambiguous import unjudged
from training.common.codings.split import Split
from training.common.loop import TrainingLoop
from training.common.program import check_base
from training.normalization.data import marks_in_context, read, taught_phrases, terms_of
from training.normalization.isolated import PhraseTrainee
from training.normalization.network import CANDIDATES, MAX_PIECES, as_stored, isolated_encoder, stored_change
from training.normalization.parts import SEARCH, Parts, build, refreshed
from training.normalization.phrases import mention_phrases, written_phrases
from training.normalization.settings import CONTEXT_PIECES, CONTEXT_WORDS, Settings
from training.normalization.train import RefiningTrainee
from training.recipes.stages import Place, Task
from training.teaching.readers import teaching_source
from training.teaching.reviewed import read_reviewed, reviewed_codings, reviewed_source

console = Console()
PSYTAR = TrainingData(
    name="PsyTAR (Zolnoori et al. 2019), mentions without the held-out drugs and preferred terms",
    licence="CC BY 4.0",
)


def check(settings: Settings) -> None:
    """Raises typer.BadParameter for a base that is no encoder, and for a network that would stay random."""
    for base in {settings.base, settings.base_of_context}:
        check_base(base, Need(pieces=max(MAX_PIECES, settings.window)))
    if settings.trained == "context" and not settings.epochs:
        raise typer.BadParameter("trained = context needs an epoch at least")


def train(settings: Settings, place: Place) -> Release:
    """A release that learned from PsyTAR's training mentions, with the codes of a file of reviews."""
    marked = read_reviewed(place.reviews) if place.reviews else {}
    split = read(place.data, reviewed_codings(marked), settings.limit)
    terms = terms_of(settings)
    start = place.start or (open_release(Path(settings.start)) if settings.start else None)
    sources = [PSYTAR, *([reviewed_source(len(marked))] if marked else [])]
    isolated, changes, seconds = _isolated(settings, terms, split, place, start)
    trained = {ADAPTER: changes} if changes else {}
    if settings.trained == "context":
        written = marks_in_context(settings.limit)
        inside = split._replace(train=[*unjudged(split.train, place.data), *written])
        trainee = RefiningTrainee(settings, isolated, terms, inside, place.device)
        seconds = _run(trainee, settings, [*terms, *inside.train, *split.valid], place, start)
        sources.append(teaching_source(len(written)))
        trained = trainee.network.files() | ({ISOLATED: changes} if changes else {})
    vectors, phrases, taught = _searched(settings, terms, split, isolated, start)
    if settings.trained == "isolated" and settings.epochs:
        sources.append(teaching_source(len(taught_phrases(terms)[: settings.limit or None])))
    return build(
        Parts(terms, vectors, phrases, taught, trained),
        _configuration(settings, terms, start) | {"training_seconds": round(seconds)},
        base=settings.base,
        sources=[*sources, *(start.manifest.training_data if start else [])],
        data=place.data if place.is_scored else None,
        output=place.output,
        device=place.device,
        nil=settings.search == "phrases",
        limit=settings.limit,
    )


def _isolated(
    settings: Settings, terms: Sequence[Term], split: Split, place: Place, start: Release | None
) -> tuple[Encoder, dict[str, Tensor], float]:
    """S_isolated as it will be served, its change from the base, and the seconds of training."""
    isolated, seconds = isolated_encoder(settings.base, place.device, start), 0.0
    model = isolated.model
    if start is not None and settings.trained == "context" and (file := stored_change(start)):
        return isolated, read_tensors(start.file(file)), seconds
    if settings.trained == "isolated" and settings.epochs:
        phrases = taught_phrases(terms, split.train)[: settings.limit or None]
        trainee = PhraseTrainee(isolated, terms, phrases, split.valid, settings, place.device)
        seconds = _run(trainee, settings, [*terms, *phrases, *split.valid], place, start)
        model = trainee.kept()
    return *as_stored(model, settings.base, place.device), seconds


def _searched(
    settings: Settings, terms: Sequence[Term], split: Split, isolated: Encoder, start: Release | None
) -> tuple[Tensor | PackedVectors, Phrases | None, Phrases | None]:
    """The vectors of terms, mentions and written phrases by S_isolated: those of `start`, to the byte, where
    its encoder stays and it has the same terms.
    """
    if start is not None and settings.trained == "context" and stored_change(start):
        model = NormalizationModel.load(start)
        if model.terms == list(terms) and (model.taught is not None) == (settings.search == "phrases"):
            packed = PackedVectors.from_tensors(read_tensors(start.file("vectors.safetensors")))
            return packed, model.phrases, model.taught
    vectors = isolated.embed([t.llt for t in terms])
    if settings.search != "phrases":
        return vectors, None, None
    return vectors, mention_phrases(isolated, terms, split.train), written_phrases(isolated, terms, vectors)


def _run(
    trainee: PhraseTrainee | RefiningTrainee,
    settings: Settings,
    data: Sequence[Any],
    place: Place,
    start: Release | None,
) -> float:
    """A whole run with its curve printed, and its seconds; the trainee ends with the best epoch's weights."""
    console.print(f"{len(trainee.data)} texts to learn from, {len(trainee.validation)} for validation")
    identity = asdict(settings) | {"data": digest_of(data), "start": start.version if start else ""}
    loop = TrainingLoop(trainee, identity, place.checkpoints)
    loop.run()
    return loop.seconds


def _configuration(settings: Settings, terms: Sequence[Term], start: Release | None) -> dict[str, Any]:
    # No paths of this machine.
    names = {"start": start.version if start else "", "terms": Path(settings.terms).name}
    stated = {
        "max_pieces": MAX_PIECES,
        "k": CANDIDATES,
        "nil_below": 0.0,
        "terms": len(terms),
        "window": settings.window,
        "training": asdict(settings) | names,
    }
    if settings.trained == "context" and settings.search == "phrases":
        stated |= {"context_words": CONTEXT_WORDS, "window": min(settings.window, CONTEXT_PIECES)}
    base = settings.base_of_context
    if settings.trained == "context" and base != settings.base:
        stated |= {"context_base": base, "context_base_sha256": base_digest(base)}
    return stated | (SEARCH if settings.search == "phrases" else {})


def refresh(release: Release, place: Place) -> Release:
    return refreshed(release, terminology.load(), place.output, place.data, place.device)


TASK = Task(Settings, check, train, refresh=refresh, is_reviewed=True)
