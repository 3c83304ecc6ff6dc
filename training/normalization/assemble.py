"""Trains Dynamic Context Refining on PsyTAR's mentions in their sentences and writes a release: terminology,
vectors, patients' phrases, trained files and the NIL threshold.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import typer
from rich.console import Console
from torch import Tensor

from models import terminology
from models.encoder.base_files import base_digest
from models.encoder.model import Encoder
from models.encoder.weights import ADAPTER, merge_adapter
from models.normalization.model import spelling_of
from models.normalization.patient_phrases import Phrases
from models.releases.manifest import Release, TrainingData
from models.releases.store import open_release
from models.releases.tensors import read_tensors
from training.common.adapter import quantized
from training.common.checkpoint import digest_of
from training.common.codings.split import Split, listed, pts_by_term
from training.common.corpora import GoldCoding
from training.common.loop import TrainingLoop
from training.normalization.data import read
from training.normalization.network import Encoders, IsolatedNetwork
from training.normalization.nil.threshold import calibrated
from training.normalization.phrases.lay import Phrase, PhraseTrainee, entries, taught_phrases
from training.normalization.phrases.patients import effects, phrases_of, threshold
from training.normalization.release import MAX_PIECES, TRAINED, ReleaseParts, build, trained_files
from training.normalization.settings import CANDIDATES, ReleaseOptions, Settings
from training.normalization.trainer import RefiningTrainee
from training.teaching.readers import teaching_source
from training.teaching.reviewed import read_reviewed, reviewed_codings, reviewed_source

console = Console()


def make(
    settings: Settings,
    options: ReleaseOptions,
    data: Path | None,
    output: Path,
    *,
    run: Path | None = None,
    device: torch.device | str = "cpu",
    reviews: Path | None = None,
) -> Release:
    """Trains, with the codes of a file of reviews, scores on the held-out mentions, and writes a release
    under `output`.
    """
    marked = read_reviewed(reviews) if reviews else {}
    split = read(data, reviewed_codings(marked))
    if not split.train:
        raise typer.BadParameter("training requires --data; --zero-shot and --like do without it")
    console.print(listed(split, pts_by_term(terminology.load())))
    terms = terminology.load(options.terms)
    isolated, seconds = _encoder(settings.base, str(device), options.start_isolated), 0.0
    adapter = _adapter_of(options.start_isolated)
    if settings.phrase_epochs:
        phrases = taught_phrases(split, terms)
        adapter, seconds = phrase_adapter(settings, isolated, terms, phrases, split, run=run, device=device)
        isolated = _encoder(settings.base, str(device))
        merge_adapter(isolated.model, adapter)
    sources = _sources(terms, len(marked), with_phrases=settings.phrase_epochs > 0 or options.taught)
    if options.start_isolated:
        begun = open_release(options.start_isolated).manifest.training_data
        sources += [source for source in begun if source not in sources]
    network = IsolatedNetwork(isolated, terms)
    if settings.epochs:
        trainee, loop = train(settings, terms, split, isolated, run=run, device=device)
        network, seconds = trainee.network, seconds + loop.seconds
    parts, chosen = _finished(network, settings, options, split, adapter)
    configuration = _configuration(settings, len(terms))
    configuration |= {"training_seconds": round(seconds)} | chosen
    console.print(f"{len(terms)} terms, NIL below {configuration['nil_below']}")
    where: dict[str, Any] = {"data": data, "output": output, "device": device}
    return build(parts, configuration, base=settings.base, sources=sources, **where)


def _sources(terms: Sequence[terminology.Term], reviewed: int, *, with_phrases: bool) -> list[TrainingData]:
    """The training data of a release: PsyTAR, phrases of the teaching corpus, and `reviewed` texts."""
    sources = [TRAINED]
    if with_phrases:
        sources.append(teaching_source(len(taught_phrases(Split([], [], []), terms))))
    if reviewed:
        sources.append(reviewed_source(reviewed))
    return sources


def _finished(
    network: IsolatedNetwork,
    settings: Settings,
    options: ReleaseOptions,
    split: Split,
    isolated: Mapping[str, Tensor],
) -> tuple[ReleaseParts, dict[str, Any]]:
    """The parts of a release over a trained network, and what was chosen on the mentions for its phrases and
    its NIL threshold.
    """
    phrases: Phrases | None = None
    chosen: dict[str, Any] = {}
    if options.phrases:
        phrases, chosen = phrases_of_training(network, split.train, settings.seed)
    taught_entries = entries(network.isolated, network.terms) if options.taught else None
    chosen |= options.searched()
    model = network.model(phrases=phrases, taught=taught_entries, vote=options.vote)
    model.prior = options.prior
    if options.spelling:
        model.spelling = spelling_of(model.encoder, model.terms, model.taught)
    chosen |= calibrated(model, split.valid)
    trained = trained_files(network, settings, isolated)
    return ReleaseParts(network.terms, network.vectors, phrases, taught_entries, trained), chosen


def train(
    settings: Settings,
    terms: Sequence[terminology.Term],
    split: Split,
    isolated: Encoder,
    *,
    run: Path | None = None,
    device: torch.device | str = "cpu",
) -> tuple[RefiningTrainee, TrainingLoop]:
    """A whole run with its curve printed; the trainee ends with the weights of the best epoch."""
    # S_context is copied and moved to the device by the loop.
    context = _encoder(settings.base_of_context, "cpu")
    trainee = RefiningTrainee(settings, Encoders(isolated, context), terms, split, device)
    console.print(f"{len(trainee.data)} training mentions, {len(split.valid)} for validation")
    digest = digest_of([*terms, *split.train, *split.valid])
    loop = TrainingLoop(trainee, asdict(settings) | {"data": digest}, run)
    loop.run()
    return trainee, loop


def phrase_adapter(
    settings: Settings,
    isolated: Encoder,
    terms: Sequence[terminology.Term],
    data: Sequence[Phrase],
    split: Split,
    *,
    run: Path | None,
    device: torch.device | str,
) -> tuple[dict[str, Tensor], float]:
    """The change of S_isolated from its base by training on lay phrases, as a release holds it, and the
    seconds that the training took.
    """
    trainee = PhraseTrainee(
        isolated, terms, data, split.valid, settings.phrase_epochs, settings.precision, settings.seed, device
    )
    console.print(f"{len(data)} phrases")
    identity = asdict(settings) | {"data": digest_of([*terms, *data, *split.valid])}
    loop = TrainingLoop(trainee, identity, run / "phrases" if run else None, "phrases")
    loop.run()
    base = Encoder.load(settings.base, device=str(device), max_pieces=MAX_PIECES)
    return quantized(base.model, trainee.kept()), loop.seconds


def phrases_of_training(
    network: IsolatedNetwork, golds: Sequence[GoldCoding], seed: int
) -> tuple[Phrases, dict[str, Any]]:
    """Patients' phrases with the threshold chosen on these mentions, and what each threshold would do."""
    grid = effects(network.isolated, network.terms, network.vectors, golds, seed)
    at_least = threshold(grid)
    phrases = phrases_of(network.isolated, network.terms, golds, at_least)
    return phrases, {"phrases_at_least": at_least, "phrases": [e._asdict() for e in grid]}


def _adapter_of(release: Path | None) -> dict[str, Tensor]:
    """What the training of a release changed of its base; nothing without a release."""
    return read_tensors(open_release(release).file(ADAPTER)) if release else {}


def _encoder(base: str, device: torch.device | str, start: Path | None = None) -> Encoder:
    """A copy, because the loaded weights are shared; with the weights of the release `start`."""
    adapter = open_release(start).file(ADAPTER) if start else None
    encoder = Encoder.load(base, device=str(device), max_pieces=MAX_PIECES, adapter=adapter)
    return Encoder(copy.deepcopy(encoder.model), encoder.tokenizer, encoder.max_pieces)


def _configuration(settings: Settings, terms: int) -> dict[str, Any]:
    configuration: dict[str, Any] = {
        "max_pieces": MAX_PIECES,
        "k": CANDIDATES,
        "terms": terms,
        "window": settings.window,
        "training": asdict(settings),
    }
    context_base = settings.base_of_context
    if context_base != settings.base:
        configuration |= {"context_base": context_base, "context_base_sha256": base_digest(context_base)}
    return configuration
