"""A release of the acronym model: the head and the trained layers, the dictionary and, but for the paper's
networks, the prototypes of its long forms.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from models.acronym.m_network import MNetwork
from models.acronym.model import AcronymModel
from models.acronym.prototypes import WRITTEN
from models.acronym.scorers import HEAD, TrainedScorer
from models.encoder.base_files import base_digest
from models.encoder.model import Encoder
from models.encoder.weights import ADAPTER, WEIGHTS
from models.releases.manifest import Release, ReleaseError, Score, TrainingData
from training.acronym.data import CORPORA, clinical_dictionary, contexts_of
from training.acronym.mixture import best_mixture, validation_scores
from training.acronym.prototypes import Estimates, read_examples, write_prototypes
from training.acronym.settings import Settings
from training.acronym.train import AcronymTrainee, train
from training.acronym.written_out import read_texts, rows_of_texts
from training.common import adapter
from training.common.build import build_release
from training.evaluation.acronym import HELD_OUT, SEED, SPLITS, Row, choices, majority, scores
from training.evaluation.evaluate import manifest_scores
from training.recipes.stages import Place
from training.teaching.readers import teaching_source

#: Share of an adapter's change that is released beside prototypes, which need less.
SHARE = 0.5
KINDS = {
    "softmax": "the cosine of sentence and long form by a trained encoder, letter features, prototypes, cue "
    "words",
    "m": "an m-network (m)",
    "triplet": "an m-network (triplet)",
}
DEFINED = "sentences of held-out ADE corpus abstracts that define an ambiguous acronym, definition taken out"
CANARY = [
    "Toxic epidermal necrolysis (TEN) began on day 3; TEN resolved after MTX was stopped.",
    "A patient with MS and optic neuritis received interferon beta.",
    "The murmur of MS was louder after the mitral valve was examined.",
    "RA was treated with gold; a CT of the chest was normal.",
    "No acronym stands here.",
]


def make(settings: Settings, place: Place) -> Release:
    """Trains, makes prototypes, scores and writes a release."""
    trainee, loop = train(settings, place.data, place.checkpoints, place.device)
    with tempfile.TemporaryDirectory(prefix="acronym-") as name:
        network = write_network(trainee, Path(name))
        stated = {
            "kind": f"definitions in the text, else {KINDS[settings.objective]}",
            "base": settings.base,
            "base_sha256": base_digest(settings.base),
        }
        configuration = {
            "max_pieces": settings.pieces,
            "network": settings.shape.to_manifest(),
            "share": share_of(settings),
            "training": asdict(settings),
            "training_seconds": round(loop.seconds),
        }
        return _built(Path(name), network, settings.names, stated, configuration, place)


def refreshed(release: Release, place: Place) -> Release:
    """The network of a release with the dictionary, prototypes and tables of today. Raises ReleaseError for a
    release without a network.
    """
    manifest = release.manifest
    model = AcronymModel.load(release, device=str(place.device))
    if not isinstance(model.scorer, TrainedScorer):
        raise ReleaseError(f"{release.version}: it has no trained network")
    known = {source.name for source in manifest.training_data}
    corpora = [name for name, source in CORPORA.items() if source.name in known]
    # The number of its texts is in the name of the teaching corpus.
    corpora += [WRITTEN] if len(known) > len(corpora) else []
    stated = {part: getattr(manifest, part) for part in ("kind", "base", "base_sha256")}
    kept = ("max_pieces", "network", "share", "training", "training_seconds")
    configuration = {key: value for key, value in manifest.configuration.items() if key in kept}
    configuration["like"] = release.version
    with tempfile.TemporaryDirectory(prefix="acronym-") as name:
        for file in {HEAD, ADAPTER, WEIGHTS} & manifest.files.keys():
            shutil.copyfile(release.file(file), Path(name) / file)
        return _built(Path(name), model.scorer.network, corpora, stated, configuration, place)


def _built(
    folder: Path,
    network: MNetwork,
    corpora: Sequence[str],
    stated: Mapping[str, Any],
    configuration: dict[str, Any],
    place: Place,
) -> Release:
    """The release of a network whose files are in the folder."""
    is_paper = network.head.config.distance
    dictionary = clinical_dictionary([] if is_paper else corpora)
    write_dictionary(dictionary, folder / "dictionary.tsv")
    configuration |= {"short_forms": len(dictionary), "casi_rows": {"held_out": HELD_OUT, "seed": SEED}}
    if not is_paper:
        estimates, trained = Estimates.clinical(), configuration["training"]
        seed, limit = trained["seed"], trained.get("limit", 0)
        examples = read_examples(network, place.data, corpora, dictionary, seed, limit)
        mixture = best_mixture(validation_scores(examples, seed, estimates))
        write_prototypes(examples.prototypes(mixture, estimates, dictionary), estimates, folder)
        configuration["mixture"] = mixture._asdict()
    return build_release(
        folder,
        task="acronym",
        **stated,
        configuration=configuration,
        training_data=sources_of(corpora),
        canary=CANARY,
        scores=(lambda model: test_scores(model, place.data, dictionary)) if place.is_scored else None,
        root=place.output,
        device=place.device,
    )


def write_dictionary(dictionary: Mapping[str, Sequence[str]], path: Path) -> None:
    """Writes the table that `load_dictionary` reads."""
    rows = (f"{short}\t{form}" for short, forms in dictionary.items() for form in forms)
    path.write_text("\n".join(["short_form\tlong_form", *rows]) + "\n", encoding="utf-8")


def write_network(trainee: AcronymTrainee, folder: Path) -> MNetwork:
    """Writes the files of the trained network; returns it as a release would load it, except for the head's
    place on the CPU and the encoder's on the device of the training.
    """
    settings, head = trainee.settings, trainee.network.head.cpu()
    share = share_of(settings)
    save_file({n: t.contiguous() for n, t in head.state_dict().items()}, folder / HEAD)
    for name, tensors in adapter.files(trainee.network.encoder.model).items():
        files = {n: t * share if n.endswith(".lora_b") else t for n, t in tensors.items()}
        # The adapter of a layer that is not trained changes nothing.
        if changed := {n: t for n, t in files.items() if name != ADAPTER or files[n[:-1] + "b"].any()}:
            save_file(changed, folder / name)
    adapter_file, weights = folder / ADAPTER, folder / WEIGHTS
    encoder = Encoder.load(
        settings.base,
        device=str(trainee.device),
        dtype=getattr(torch, settings.precision),
        max_pieces=settings.pieces,
        adapter=adapter_file if adapter_file.exists() else None,
        weights=weights if weights.exists() else None,
    )
    return MNetwork(encoder, head)


def share_of(settings: Settings) -> float:
    """The share of the change of an adapter that is released."""
    return SHARE if settings.rank and not settings.is_paper else 1.0


def sources_of(corpora: Sequence[str]) -> list[TrainingData]:
    """The training data as a manifest names it."""
    contexts = contexts_of(corpora)
    written = [teaching_source(len(contexts))] if contexts else []
    return [*(source for name, source in CORPORA.items() if name in corpora), *written]


def test_scores(model: Any, data: Path, dictionary: Mapping[str, Sequence[str]]) -> list[Score]:
    """On the test sets that are in `data`."""
    files = {split: f"{split}_dev.{'csv' if split == 'casi' else 'json'}" for split in SPLITS}
    there = [split for split in SPLITS if (data / "acronyms" / files[split]).exists()]
    measured = manifest_scores("acronym", model, data, there)
    if not (data / "ade").exists():
        return measured
    # Where a text itself defines the acronym, gold is known.
    rows, others = (rows_of_texts(read_texts(data, part), dictionary).defined for part in (True, False))
    return [*measured, _score_on_definitions(model, rows, others)] if rows else measured


def _score_on_definitions(model: Any, rows: Sequence[Row], others: Sequence[Row]) -> Score:
    commonest = majority(others)
    baseline = [commonest.get(row.short_form, row.senses[0]) for row in rows]
    return Score(
        name="accuracy_defined",
        value=round(scores(rows, choices(model, rows))["accuracy"], 4),
        definition="share of rows whose defined long form scores highest of the dictionary's",
        data=DEFINED,
        records=len(rows),
        baseline=round(scores(rows, baseline)["accuracy"], 4),
        baseline_definition="what other abstracts define most often, else the dictionary's first",
    )
