"""A release of the acronym model: the dictionary and its two tables, or one of the paper's networks."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer
from safetensors.torch import save_file

from models.acronym import cues, frequencies
from models.acronym.cues import CueWords
from models.acronym.frequencies import SenseFrequencies
from models.acronym.m_network import HEAD
from models.acronym.tables import TableScorer, Weights
from models.drift import REFERENCE
from models.encoder.base_files import base_digest
from models.encoder.capabilities import Need
from models.releases.manifest import NO_BASE, Release, ReleaseError, Score, TrainingData
from training.acronym.data import (
    CORPORA,
    COUNTED,
    WRITTEN,
    clinical_dictionary,
    contexts_of,
    sense_of,
    validation_sentences,
)
from training.acronym.mined_cues import extended, mined
from training.acronym.settings import Settings
from training.acronym.train import AcronymTrainee, train
from training.acronym.written_out import read_texts, rows_of_texts
from training.common import adapter
from training.common.build import build_release
from training.common.long_forms import key
from training.common.program import check_base
from training.common.reference import TextsOf
from training.evaluation.acronym import HELD_OUT, SEED, SPLITS, Row, casi_parts, choices, majority, scores
from training.evaluation.evaluate import manifest_scores
from training.recipes.stages import Place, Task
from training.teaching.readers import marked_texts, teaching_source

KINDS = {
    "tables": "how frequent its meanings are and the words near it",
    "m": "an m-network (m)",
    "triplet": "an m-network (triplet)",
}
DEFINED = "sentences of held-out ADE corpus abstracts that define an ambiguous acronym, definition taken out"
WRITTEN_OUT = "sentences written to choose the weights"
CANARY = [
    "Toxic epidermal necrolysis (TEN) began on day 3; TEN resolved after MTX was stopped.",
    "A patient with MS and optic neuritis received interferon beta.",
    "The murmur of MS was louder after the mitral valve was examined.",
    "RA was treated with gold; a CT of the chest was normal.",
    "No acronym stands here.",
]


def make(settings: Settings, place: Place) -> Release:
    """Writes and scores a release; one with a network is trained first."""
    dictionary = clinical_dictionary([] if settings.is_network else settings.names)
    with tempfile.TemporaryDirectory(prefix="acronym-") as name:
        folder = Path(name)
        stated: dict[str, Any] = {
            "kind": f"definitions in the text, else {KINDS[settings.objective]}",
            "base": settings.base if settings.is_network else NO_BASE,
            "base_sha256": base_digest(settings.base) if settings.is_network else None,
            "training_data": sources_of(settings),
        }
        if not settings.is_network:
            write_tables(settings, place.data, dictionary, folder)
            # Nothing of the machine or of the networks: equal tables are the same release.
            weights = Weights(settings.frequency, settings.cues)._asdict()
            return _built(folder, stated, {"weights": weights}, dictionary, place)
        trainee, loop = train(settings, place.data, place.checkpoints, place.device)
        write_network(trainee, folder)
        trained = {"training": asdict(settings), "training_seconds": round(loop.seconds)}
        return _built(folder, stated, trained | {"max_pieces": settings.pieces}, dictionary, place)


def refreshed(release: Release, place: Place) -> Release:
    """The release with today's dictionary and, unless it has a network, with today's two tables, whose counts
    are made anew from the corpora that it names. Raises ReleaseError where it names an unknown one.
    """
    manifest = release.manifest
    if manifest.base == NO_BASE:
        return make(_settings_of(release), place)
    stated = {name: getattr(manifest, name) for name in ("kind", "base", "base_sha256", "training_data")}
    with tempfile.TemporaryDirectory(prefix="acronym-") as name:
        for file in manifest.files.keys() - {REFERENCE}:
            shutil.copyfile(release.file(file), Path(name) / file)
        configuration = manifest.configuration | {"like": release.version}
        return _built(Path(name), stated, configuration, clinical_dictionary([]), place)


def _settings_of(release: Release) -> Settings:
    """The settings that a release of tables was made with, as its manifest tells them."""
    weights = Weights(**release.manifest.configuration["weights"])
    names = {source.name: name for name, source in CORPORA.items()}
    written = teaching_source(0).name.partition("0")[0]
    corpora = []
    for source in release.manifest.training_data:
        name = WRITTEN if source.name.startswith(written) else names.get(source.name)
        if name is None:
            raise ReleaseError(f"{release.version}: the recipe has no corpus {source.name!r}")
        corpora.append(name)
    return Settings(corpora=",".join(corpora), frequency=weights.prior, cues=weights.cues)


def _built(
    folder: Path,
    stated: dict[str, Any],
    configuration: dict[str, Any],
    dictionary: Mapping[str, Sequence[str]],
    place: Place,
) -> Release:
    write_dictionary(dictionary, folder / "dictionary.tsv")
    texts = [marked.text for _, marked in marked_texts("clinical", "train")]
    counted = {"short_forms": len(dictionary), "casi_rows": {"held_out": HELD_OUT, "seed": SEED}}
    return build_release(
        folder,
        task="acronym",
        configuration=configuration | counted,
        canary=CANARY,
        scores=(lambda model: test_scores(model, place.data, dictionary)) if place.is_scored else None,
        root=place.output,
        reference=TextsOf.some("clinical sentences of the teaching corpus, training part", texts),
        device=place.device,
        **stated,
    )


def write_tables(
    settings: Settings, data: Path, dictionary: Mapping[str, Sequence[str]], folder: Path
) -> None:
    """Writes how frequent each meaning is, and the cue words."""
    cue_words = CueWords.load(cues.CLINICAL)
    if "casi" in settings.names:
        cue_words = extended(cue_words, mined(casi_parts(data / "acronyms")[0], dictionary))
    cue_words.write(folder / cues.TABLE)
    words = SenseFrequencies.load(frequencies.CLINICAL).words
    known = SenseFrequencies(words, counts_of(settings, data, dictionary))
    known.write(folder / frequencies.TABLE, folder / frequencies.COUNTS)


def write_dictionary(dictionary: Mapping[str, Sequence[str]], path: Path) -> None:
    """Writes the table that `load_dictionary` reads."""
    rows = (f"{short}\t{form}" for short, forms in dictionary.items() for form in forms)
    path.write_text("\n".join(["short_form\tlong_form", *rows]) + "\n", encoding="utf-8")


def counts_of(
    settings: Settings, data: Path, dictionary: Mapping[str, Sequence[str]]
) -> dict[str, Counter[tuple[str, str]]]:
    """How often CASI's training rows and definitions in abstracts have each sense, of which the dictionary
    may have another spelling ("intraarterial", "intra-arterial").
    """
    rows: dict[str, Sequence[Row]] = {}
    if "casi" in settings.names:
        rows["casi"] = casi_parts(data / "acronyms")[0]
    if "ade" in settings.names:
        rows["ade"] = rows_of_texts(read_texts(data, held_out=False), dictionary).defined
    counts: dict[str, Counter[tuple[str, str]]] = {}
    for source, own in rows.items():
        counts[source] = Counter(map(sense_of, own))
        for (short, form), n in list(counts[source].items()):
            others = [f for f in dictionary.get(short, ()) if f != form and key(f) == key(form)]
            counts[source].update({(short, other): n for other in others})
    return counts


def write_network(trainee: AcronymTrainee, folder: Path) -> None:
    """Writes the files of the trained network."""
    layer = trainee.network.dense.state_dict()
    save_file({name: tensor.cpu().contiguous() for name, tensor in layer.items()}, folder / HEAD)
    for name, tensors in adapter.files(trainee.network.encoder.model).items():
        save_file(tensors, folder / name)


def sources_of(settings: Settings) -> list[TrainingData]:
    """The data as a manifest names it."""
    contexts = contexts_of(settings.names)
    written = [teaching_source(len(contexts))] if contexts else []
    return [*(source for name, source in CORPORA.items() if name in settings.names), *written]


def test_scores(model: Any, data: Path, dictionary: Mapping[str, Sequence[str]]) -> list[Score]:
    """On the test sets that are in `data`, and on the written sentences."""
    files = {split: f"{split}_dev.{'csv' if split == 'casi' else 'json'}" for split in SPLITS}
    # Tables know nothing of the other fields.
    splits = SPLITS[:1] if isinstance(model.scorer, TableScorer) else SPLITS
    there = [split for split in splits if (data / "acronyms" / files[split]).exists()]
    measured = manifest_scores("acronym", model, data, there)
    sentences = validation_sentences(dictionary)
    firsts = [row.senses[0] for row in sentences]
    if sentences:
        measured.append(_accuracy("sentences", model, sentences, firsts, "the dictionary's first"))
    if not (data / "ade").exists():
        return measured
    # Where a text itself defines the acronym, gold is known.
    rows, others = (rows_of_texts(read_texts(data, part), dictionary).defined for part in (True, False))
    commonest = majority(others)
    if rows:
        usual = [commonest.get(row.short_form, row.senses[0]) for row in rows]
        said = "what other abstracts define most often, else the dictionary's first"
        measured.append(_accuracy("defined", model, rows, usual, said))
    return measured


def _accuracy(name: str, model: Any, rows: Sequence[Row], baseline: Sequence[str], said: str) -> Score:
    return Score(
        name=f"accuracy_{name}",
        value=round(scores(rows, choices(model, rows))["accuracy"], 4),
        definition="share of rows whose right long form scores highest of the dictionary's",
        data=DEFINED if name == "defined" else WRITTEN_OUT,
        records=len(rows),
        baseline=round(scores(rows, baseline)["accuracy"], 4),
        baseline_definition=said,
    )


def check(settings: Settings) -> None:
    """Raises typer.BadParameter for a corpus that is none, and for a base that is no encoder."""
    known = (WRITTEN, *CORPORA) if settings.is_network else COUNTED
    for name in settings.names:
        if name not in known:
            raise typer.BadParameter(f"corpora: {name!r} is none of {', '.join(known)}")
    if settings.is_network:
        check_base(settings.base, Need(pieces=settings.pieces, is_split=True))


TASK = Task(Settings, check, make, refresh=refreshed)
