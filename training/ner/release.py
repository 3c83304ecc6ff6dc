"""Releases of CONORM-NER, of taggers and judges: changes of the encoder, the heads, the drug lexicon, and
what was chosen for them. They are made by training, of the weights of others, or again with today's tables.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import typer
from safetensors.torch import save_file

from models import drugs
from models.drift import REFERENCE
from models.encoder.base_files import base_digest
from models.encoder.capabilities import Need
from models.ner.decoding import Decoding
from models.ner.model import NerModel
from models.ner.untagged_events import NAMES, write_names
from models.releases.manifest import Release, Score, TrainingData
from models.types import LABELS
from training.common.build import build_release
from training.common.corpora import ADE_NEGATIVES, PSYTAR_TRAINING, VAERS_REPORTS, ade_corpus
from training.common.program import check_base
from training.evaluation.evaluate import manifest_scores
from training.evaluation.relation import SPLITS
from training.ner.data import MARKED_REPORTS, MARKED_REVIEWS, NEGATIVES, REVIEWED, Corpus, read
from training.ner.mean import mean_configuration, mean_files
from training.ner.settings import Settings, event_names
from training.ner.train import TaggerTrainee, train, validation_scores
from training.recipes.stages import Place, Task
from training.teaching.readers import teaching_sources
from training.teaching.reviewed import reviewed_source

#: Marked reviews, whose corpus has a contradictory licence: such a release stays with whoever made it.
DRUGLIB = TrainingData(
    name="reviews of Druglib.com (Graesser et al. 2018), the recipe's part of the marked ones",
    licence="contradictory: not to be passed on",
)
#: Weights of the log-odds of an event.
WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.5)
CANARY = [
    "Zoloft gave me awful insomnia and night sweats, no nausea though.",
    "Intravenous azithromycin - induced ototoxicity .",
    "brain zaps since I stopped effexor, was on it for depression",
    "The weather was fine.",
]


class Form(NamedTuple):
    """What a release of a task is."""

    task: str
    kind: str
    canary: list[Any]
    scores: Callable[[Mapping[str, Any], Place], Callable[[Any], list[Score]] | None]
    """of a run's settings by name: what measures a model; None where no scores are read"""
    tagger: Callable[[Any], NerModel]
    """the tagger of a loaded model"""


def make(settings: Settings, place: Place, form: Form | None = None) -> Release:
    """Trains, from the weights of `start` or of the base, with the texts of a file of reviews, scores on the
    test parts of the training corpora, and writes a release, of a tagger unless `form` is another one.
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
        return _built(settings, trainee, round(loop.seconds), folder, corpora, place, form or TAGGER)


def _built(
    settings: Settings,
    trainee: TaggerTrainee,
    seconds: int,
    folder: Path,
    corpora: Mapping[str, Corpus],
    place: Place,
    form: Form,
) -> Release:
    configuration: dict[str, Any] = {
        "labels": list(LABELS),
        "max_pieces": trainee.encoder.max_pieces,
        "decode": settings.decode,
        "window": settings.window,
        "own_from": settings.own_from if settings.heads else Decoding().own_from,
        "labels_pooled": trainee.decoding.labels_pooled,
        "named_from": trainee.decoding.named_from,
        "withdrawals_named": trainee.decoding.withdrawals_named,
        "stated_read": trainee.decoding.stated_read,
        "training": asdict(settings) | {"start": trainee.start.version if trainee.start else ""},
        "training_seconds": seconds,
    }

    def chosen(model: Any) -> dict[str, Any]:
        return chosen_of_heads(partial(validation_scores, corpora), form.tagger(model))

    return build_release(
        folder,
        task=form.task,
        kind=form.kind,
        base=settings.base,
        base_sha256=base_digest(settings.base),
        configuration=configuration,
        training_data=sources_of(settings, corpora, trainee.start),
        canary=form.canary,
        scores=form.scores(asdict(settings), place),
        root=place.output,
        device=trainee.device,
        chosen=chosen if settings.heads else None,
    )


def test_scores(trained: Mapping[str, Any], place: Place) -> Callable[[Any], list[Score]] | None:
    """What measures a model on the test parts of the training corpora; None where no scores are read."""
    corpora, split = trained["corpora"], trained["split"]
    tested = ([split] if corpora != "psytar" else []) + (["psytar_test"] if corpora != "ade" else [])
    return partial(manifest_scores, "ner", data=place.data, splits=tested) if place.is_scored else None


TAGGER = Form("ner", "CONORM-NER head over a trained encoder", CANARY, test_scores, lambda model: model)


def sources_of(
    settings: Settings, corpora: Mapping[str, Corpus], start: Release | None
) -> list[TrainingData]:
    """What a release was trained on, with what the release that its run began with knew."""
    public = {"clinical": ade_corpus(settings.split), "posts": PSYTAR_TRAINING, NEGATIVES: ADE_NEGATIVES}
    own = [public[n] for n in corpora if n in public]
    own += teaching_sources(text for corpus in corpora.values() for text in corpus.train)
    if REVIEWED in corpora:
        own.append(reviewed_source(len(corpora[REVIEWED].train)))
    if MARKED_REPORTS in corpora:
        own.append(VAERS_REPORTS)
    if MARKED_REVIEWS in corpora:
        own.append(DRUGLIB)
    earlier = start.manifest.training_data if start else []
    return list(dict.fromkeys([*own, *earlier]))


def refreshed(releases: Sequence[Release], place: Place, form: Form | None = None) -> Release:
    """Drugs and the names of adverse events are those of the bundled tables where the first release has any;
    the rest is as it was in that release, and the scores are measured anew. The weights of several releases
    are averaged. Raises ReleaseError where they began with other heads.
    """
    form, manifest = form or TAGGER, releases[0].manifest
    # Curves that earlier programs measured are not measured anew.
    curves = {"own_events", "alarms"}
    kept = {name: value for name, value in manifest.configuration.items() if name not in curves}
    configuration = kept | _origin(releases)
    sources = [source for release in releases for source in release.manifest.training_data]
    with tempfile.TemporaryDirectory(prefix="ner-") as name:
        folder = Path(name)
        _write_files(folder, releases)
        return build_release(
            folder,
            task=form.task,
            kind=manifest.kind,
            base=manifest.base,
            base_sha256=manifest.base_sha256,
            configuration=configuration,
            training_data=list(dict.fromkeys(sources)),
            canary=form.canary,
            scores=form.scores(configuration["training"], place),
            root=place.output,
            device=place.device,
        )


def _origin(releases: Sequence[Release]) -> dict[str, Any]:
    if len(releases) == 1:
        return {"like": releases[0].version}
    return mean_configuration(releases)


def _write_files(folder: Path, releases: Sequence[Release]) -> None:
    files = releases[0].manifest.files
    # A reference holds the answers of the release that it is of.
    for file in files.keys() - {REFERENCE}:
        shutil.copyfile(releases[0].file(file), folder / file)
    if drugs.RELEASE_FILE in files:
        shutil.copyfile(drugs.BUNDLED, folder / drugs.RELEASE_FILE)
    if len(releases) > 1:
        for file, tensors in mean_files(releases).items():
            save_file(tensors, folder / file)
    if NAMES in files:
        write_names(folder / NAMES, event_names())


def chosen_of_heads(scores: Callable[[NerModel], Mapping[str, float]], model: NerModel) -> dict[str, Any]:
    """The entries of a configuration of a tagger with further heads: the weight of the event head with the
    best mean of the validation scores, which the model has from then on.
    """
    tried = {}
    for weight in WEIGHTS:
        model.decoding.event_weight = weight
        by_corpus = scores(model)
        tried[str(weight)] = round(sum(by_corpus.values()) / len(by_corpus), 4)
    best = max(WEIGHTS, key=lambda weight: tried[str(weight)])
    model.decoding.event_weight = best
    return {"event_weight": best, "event_below": 0.0, "event_weights_tried": tried}


def check(settings: Settings) -> None:
    """Raises typer.BadParameter for a split that is none, and for a base that is no encoder."""
    if settings.split not in SPLITS:
        raise typer.BadParameter(f"no split {settings.split!r} of the ADE corpus")
    check_base(settings.base, Need())


TASK = Task(
    Settings, check, make, refreshed, lambda release, place: refreshed([release], place), is_reviewed=True
)
