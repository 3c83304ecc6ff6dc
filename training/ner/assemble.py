"""Trains CONORM-NER and writes a release: adapter or encoder layers, the head, and the drug lexicon."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from safetensors.torch import save_file

from models import drugs
from models.encoder.base_files import base_digest
from models.encoder.model import Encoder
from models.ner.decoding import Floats, tags_of
from models.ner.model import NerModel
from models.ner.named_events import NAMES, write_names
from models.releases.manifest import Release, Score, TrainingData
from models.text import words
from models.types import LABELS
from training.common.build import build_release
from training.common.checkpoint import digest_of
from training.common.corpora import ADE_NEGATIVES, PSYTAR_TRAINING, CorpusError, GoldText, ade_corpus
from training.common.loop import TrainingLoop
from training.common.tagging.spans import gold_spans, mention_spans
from training.common.tagging.transitions import pairs_of, transitions_of
from training.common.tagging.word_tags import word_tags
from training.evaluation.evaluate import manifest_scores
from training.evaluation.measures import SpanScores, strict_spans
from training.ner.data import NEGATIVES, REVIEWED, Corpus, Example, examples, read
from training.ner.event_options import event_options, held_out_curves
from training.ner.settings import Settings, event_names
from training.ner.trainer import TaggerTrainee
from training.recipes.stages import Place
from training.teaching.readers import teaching_sources
from training.teaching.reviewed import reviewed_source

console = Console()
CANARY = [
    "Zoloft gave me awful insomnia and night sweats, no nausea though.",
    "Intravenous azithromycin - induced ototoxicity .",
    "brain zaps since I stopped effexor, was on it for depression",
    "The weather was fine.",
]


def score(model: NerModel, texts: Sequence[GoldText], labels: Sequence[str]) -> SpanScores:
    return strict_spans(mention_spans(model.predict([t.text for t in texts])), gold_spans(texts), labels)


def training_sentences(corpora: Mapping[str, Corpus], settings: Settings) -> list[Example]:
    """The training sentences of all corpora as pieces with tags."""
    encoder, tags = Encoder.load(settings.base), tags_of(LABELS)
    return [example for corpus in corpora.values() for example in examples(corpus, encoder, tags)]


def counted_transitions(corpora: Mapping[str, Corpus]) -> Floats:
    """The transitions between the tags of the training sentences of all corpora but the negatives, which hold
    no mentions on purpose.
    """
    numbers = {tag: i for i, tag in enumerate(tags_of(LABELS))}
    sequences = [
        [numbers[tag] for tag in word_tags(text, words(text.text), corpus.lexicon)]
        for name, corpus in corpora.items()
        if name != NEGATIVES
        for text in corpus.train
    ]
    return transitions_of(pairs_of(sequences, len(numbers)), list(numbers))


def validation_scores(corpora: Mapping[str, Corpus], model: NerModel) -> dict[str, float]:
    """Corpus to strict micro F1 on its validation part."""
    return {name: score(model, c.valid, c.labels).micro.f1 for name, c in corpora.items() if c.valid}


def train(
    corpora: Mapping[str, Corpus],
    settings: Settings,
    run: Path | None,
    device: torch.device | str = "cpu",
    start: Release | None = None,
) -> tuple[TaggerTrainee, TrainingLoop]:
    """A whole run with its curve printed; the trainee ends with the weights of the best epoch. Raises
    CorpusError where there is no sentence to train on.
    """
    data = training_sentences(corpora, settings)
    if not data:
        raise CorpusError(f"there is no sentence to train on: the files of {', '.join(corpora)} are empty")
    valid = sum(len(c.valid) for c in corpora.values())
    console.print(f"{len(data)} training sentences, {valid} for validation")
    scores = partial(validation_scores, corpora)
    transitions = counted_transitions(corpora) if settings.decode == "viterbi" else None
    trainee = TaggerTrainee(settings, data, scores, device, transitions, start)
    digest = digest_of(text for corpus in corpora.values() for text in (*corpus.train, *corpus.valid))
    begun = start.version if start else ""
    loop = TrainingLoop(trainee, asdict(settings) | {"data": digest, "start": begun}, run)
    loop.run()
    return trainee, loop


def make(settings: Settings, place: Place) -> Release:
    """Trains, from the weights of `start` or of the base, with the texts of a file of reviews, scores on the
    test parts of the training corpora, and writes a release.
    """
    corpora = read(place.data, settings, place.reviews)
    trainee, loop = train(corpora, settings, place.checkpoints, place.device, place.start)
    with tempfile.TemporaryDirectory(prefix="ner-") as name:
        folder = Path(name)
        for file, tensors in trainee.release_files().items():
            save_file(tensors, folder / file)
        shutil.copyfile(drugs.BUNDLED, folder / drugs.RELEASE_FILE)
        if settings.heads:
            write_names(folder / NAMES, event_names())
        return _built(settings, trainee, round(loop.seconds), folder, corpora, place)


def _built(
    settings: Settings,
    trainee: TaggerTrainee,
    seconds: int,
    folder: Path,
    corpora: Mapping[str, Corpus],
    place: Place,
) -> Release:
    configuration: dict[str, Any] = {
        "labels": list(LABELS),
        "max_pieces": trainee.encoder.max_pieces,
        "decode": settings.decode,
        "window": settings.window,
        "labels_pooled": trainee.decoding.labels_pooled,
        "named_from": trainee.decoding.named_from,
        "withdrawals_named": trainee.decoding.withdrawals_named,
        "training": asdict(settings) | {"start": trainee.start.version if trainee.start else ""},
        "training_seconds": seconds,
    }
    if settings.heads:
        model = trainee.released()
        configuration |= event_options(model, partial(validation_scores, corpora)) | held_out_curves(model)
    return build_release(
        folder,
        task="ner",
        kind="CONORM-NER head over a trained encoder",
        base=settings.base,
        base_sha256=base_digest(settings.base),
        configuration=configuration,
        training_data=_sources(settings, corpora, trainee.start),
        canary=CANARY,
        scores=test_scores(settings.corpora, settings.split, place),
        root=place.output,
        device=trainee.device,
    )


def test_scores(corpora: str, split: str, place: Place) -> Callable[[Any], list[Score]] | None:
    """What measures a model on the test parts of the training corpora; None where no scores are read."""
    tested = ([split] if corpora != "psytar" else []) + (["psytar_test"] if corpora != "ade" else [])
    return partial(manifest_scores, "ner", data=place.data, splits=tested) if place.is_scored else None


def _sources(settings: Settings, corpora: Mapping[str, Corpus], start: Release | None) -> list[TrainingData]:
    """What a release was trained on, with what the release that its run began with knew."""
    public = {"clinical": ade_corpus(settings.split), "posts": PSYTAR_TRAINING, NEGATIVES: ADE_NEGATIVES}
    own = [public[n] for n in corpora if n in public]
    own += teaching_sources(text for corpus in corpora.values() for text in corpus.train)
    if REVIEWED in corpora:
        own.append(reviewed_source(len(corpora[REVIEWED].train)))
    earlier = start.manifest.training_data if start else []
    return list(dict.fromkeys([*own, *earlier]))
