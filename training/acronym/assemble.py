"""Trains the scorer of long forms and writes a release: the head, with an m-network where one is asked for,
the dictionary and the prototypes of its long forms.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from models.acronym.m_network import MNetwork
from models.acronym.model import AcronymModel, load_dictionary
from models.acronym.prototypes import WRITTEN
from models.acronym.scorers import HEAD, TrainedScorer
from models.encoder.base_files import base_digest
from models.encoder.model import Encoder
from models.encoder.weights import ADAPTER, WEIGHTS
from models.releases.manifest import Release, ReleaseError, Score, TrainingData
from models.releases.store import open_release
from training.acronym.data import CORPORA, MADE_OF, read_training, split_by_acronym
from training.acronym.prototypes import Estimates
from training.acronym.settings import ReleaseOptions, Settings
from training.acronym.trainer import AcronymTrainee
from training.acronym.usage_examples import (
    CachedOutputs,
    mixed_prototypes,
    score_on_definitions,
    usage_examples,
    with_dictionary_spellings,
    write_prototypes,
)
from training.acronym.written import extended_dictionary
from training.common import adapter
from training.common.build import build_release
from training.common.long_forms import casi_senses
from training.common.loop import TrainingLoop
from training.evaluation.acronym import HELD_OUT, SEED, SPLITS
from training.evaluation.evaluate import manifest_scores
from training.teaching.readers import acronym_contexts, teaching_source

ZERO_SHOT_PIECES = 192
CANARY = [
    "Toxic epidermal necrolysis (TEN) began on day 3; TEN resolved after MTX was stopped.",
    "A patient with MS and optic neuritis received interferon beta.",
    "The murmur of MS was louder after the mitral valve was examined.",
    "RA was treated with gold; a CT of the chest was normal.",
    "No acronym stands here.",
]


def make_zero_shot(
    settings: Settings,
    options: ReleaseOptions,
    data: Path | None,
    output: Path,
    device: torch.device | str = "cpu",
) -> Release:
    """Writes a release under `output` of the base and a dictionary alone; scored where `data` is given."""
    with tempfile.TemporaryDirectory(prefix="acronym-") as name:
        folder = Path(name)
        shutil.copyfile(options.dictionary, folder / "dictionary.tsv")
        return build_release(
            folder,
            task="acronym",
            kind="definitions in the text, else zero-shot sentence distance over a dictionary",
            base=settings.base,
            base_sha256=base_digest(settings.base),
            configuration={
                "max_pieces": ZERO_SHOT_PIECES,
                "short_forms": len(load_dictionary(options.dictionary)),
            },
            training_data=[],
            canary=CANARY,
            scores=lambda model: split_scores(model, data),
            root=output,
            device=device,
        )


def train(
    settings: Settings, data: Path, run: Path | None, device: torch.device | str = "cpu"
) -> AcronymTrainee:
    """A whole run with its curve printed; the trainee ends with the weights of the best epoch."""
    corpora, validated = (
        [read_training(data, corpus) for corpus in names]
        for names in (settings.corpus_names, settings.validated_names)
    )
    parts = split_by_acronym(corpora, settings.held_out, settings.seed, validated)
    trainee = AcronymTrainee(settings, *parts, device)
    TrainingLoop(trainee, asdict(settings), run).run()
    return trainee


def make(
    settings: Settings,
    options: ReleaseOptions,
    *,
    data: Path,
    output: Path,
    run: Path | None = None,
    device: torch.device | str = "cpu",
) -> Release:
    """Trains, or takes the network of a release, builds prototypes where they are asked for, scores, and
    writes a release under `output`.
    """
    contexts = acronym_contexts("train") if options.usage_examples else []
    learned = [c for c in ("casi", "ade") if options.usage_examples and c not in options.left_out]
    senses = [(short, form) for (short, _), form in casi_senses().items()] if "casi" in learned else []
    dictionary = extended_dictionary(load_dictionary(options.dictionary), contexts, senses)
    with tempfile.TemporaryDirectory(prefix="acronym-") as name:
        folder = Path(name)
        write_dictionary(dictionary, folder / "dictionary.tsv")
        share = options.share
        if options.like:
            network, settings, share = network_of(open_release(Path(options.like)), folder)
        else:
            network = write_network(train(settings, data, run, device), folder, share)
        configuration: dict[str, Any] = {"share": share} if share != 1 else {}
        if options.usage_examples:
            identity = asdict(settings) | {"share": share, "like": options.like}
            outputs = CachedOutputs(network, run, identity)
            estimated = Estimates.clinical()
            examples = usage_examples(
                outputs, data, dictionary, contexts, estimated, settings.seed, options.left_out
            )
            prototypes = with_dictionary_spellings(mixed_prototypes(examples, settings.seed), dictionary)
            write_prototypes(prototypes, estimated, folder)
            configuration["mixture"] = prototypes.mixture._asdict()
        sources = sources_of(settings, learned, len(contexts))
        return _built(
            folder, settings, dictionary, configuration, sources, data=data, root=output, device=device
        )


def write_dictionary(dictionary: Mapping[str, Sequence[str]], path: Path) -> None:
    """Writes the table that `load_dictionary` reads."""
    rows = (f"{short}\t{form}" for short, forms in dictionary.items() for form in forms)
    path.write_text("\n".join(["short_form\tlong_form", *rows]) + "\n", encoding="utf-8")


def write_network(trainee: AcronymTrainee, folder: Path, share: float = 1.0) -> MNetwork:
    """Writes the files of the trained network; returns it as a release would load it, except for the head's
    place on the CPU and the encoder's on the device of the training. `share`: of an adapter's change.
    """
    settings, head = trainee.settings, trainee.head.cpu()
    save_file({n: t.contiguous() for n, t in head.state_dict().items()}, folder / HEAD)
    for name, tensors in encoder_files(trainee).items():
        save_file({n: t * share if n.endswith(".lora_b") else t for n, t in tensors.items()}, folder / name)
    adapter_file, weights = folder / ADAPTER, folder / WEIGHTS
    encoder = Encoder.load(
        settings.base,
        device=str(trainee.device),
        dtype=getattr(torch, settings.precision),
        max_pieces=settings.max_pieces,
        adapter=adapter_file if adapter_file.exists() else None,
        weights=weights if weights.exists() else None,
    )
    return MNetwork(encoder, head)


def network_of(release: Release, folder: Path) -> tuple[MNetwork, Settings, float]:
    """The trained network of a release, whose files are copied into the folder, with the settings that it was
    trained with and the share of the change that is in it. Raises ReleaseError for a release without one.
    """
    configuration = release.manifest.configuration
    model = AcronymModel.load(release)
    if not isinstance(model.scorer, TrainedScorer):
        raise ReleaseError(f"{release.version}: it has no trained network")
    for name in {HEAD, ADAPTER, WEIGHTS} & release.manifest.files.keys():
        shutil.copyfile(release.file(name), folder / name)
    # An older release states settings that are options no more.
    known = {field.name for field in fields(Settings)} & configuration["training"].keys()
    stored = {name: configuration["training"][name] for name in known}
    record: dict[str, Any] = {k: ",".join(v) if isinstance(v, list) else v for k, v in stored.items()}
    stated: dict[str, Any] = {"base": release.manifest.base, "max_pieces": configuration["max_pieces"]}
    return model.scorer.network, Settings(**record, **stated), configuration.get("share", 1.0)


def encoder_files(trainee: AcronymTrainee) -> dict[str, dict[str, Tensor]]:
    """File name to tensors; none where only the head was trained."""
    if trainee.upper is None:
        return {}
    if trainee.settings.rank:
        return adapter.files(trainee.upper.model)
    # The trained model lacks the frozen layers.
    whole = adapter.trainable(Encoder.load(trainee.settings.base), 0).model
    whole.load_state_dict(trainee.upper.model.state_dict(), strict=False)
    return adapter.files(whole)


def _built(
    folder: Path,
    settings: Settings,
    dictionary: Mapping[str, Sequence[str]],
    of_prototypes: Mapping[str, Any],
    sources: list[TrainingData],
    *,
    data: Path,
    root: Path,
    device: torch.device | str,
) -> Release:
    """`of_prototypes`: what the configuration says of prototypes and of the share of the change."""
    return build_release(
        folder,
        task="acronym",
        kind=kind_of(settings, with_prototypes="mixture" in of_prototypes),
        base=settings.base,
        base_sha256=base_digest(settings.base),
        configuration={
            "max_pieces": settings.max_pieces,
            "short_forms": len(dictionary),
            "network": settings.shape.to_manifest(),
            **of_prototypes,
            "casi_rows": {"held_out": HELD_OUT, "seed": SEED},
            "training": _record(settings),
        },
        training_data=sources,
        canary=CANARY,
        scores=lambda model: _scores(model, data, dictionary, sources),
        root=root,
        device=device,
    )


def _scores(
    model: Any, data: Path, dictionary: Mapping[str, Sequence[str]], sources: Sequence[TrainingData]
) -> list[Score]:
    """On the sets that are in `data`, of which there must be one where the model learned from CASI."""
    has_definitions = dictionary and (data / "ade").exists()
    defined = [score_on_definitions(model, data, dictionary)] if has_definitions else []
    own = split_scores(model, data) if CORPORA["casi"] in sources or splits_in(data) else []
    return [*own, *defined]


def _record(settings: Settings) -> dict[str, Any]:
    """The settings as a manifest states them."""
    elsewhere = {"base", "max_pieces", "corpora", "validated"}
    record = {name: value for name, value in asdict(settings).items() if name not in elsewhere}
    return record | {"corpora": list(settings.corpus_names), "validated": list(settings.validated_names)}


def kind_of(settings: Settings, *, with_prototypes: bool) -> str:
    """What a release scores long forms by; an m-network is named only where there is one."""
    trained = " by a trained encoder" if settings.layers else ""
    parts = {
        f"an m-network ({settings.objective})": settings.shape.distance,
        "the cosine of sentence and long form" + trained: settings.shape.alone,
        "letter features": settings.shape.surface_features,
        "prototypes": with_prototypes,
        "cue words": with_prototypes,
    }
    return "definitions in the text, else " + ", ".join(name for name, there in parts.items() if there)


def sources_of(settings: Settings, learned: Sequence[str], contexts: int) -> list[TrainingData]:
    """The training data as a manifest names it; `learned`: the corpora in prototypes, `contexts`: number of
    the teaching corpus' sentences in them.
    """
    read = (*settings.corpus_names, *settings.validated_names)
    names = {*(MADE_OF.get(name, name) for name in read), *learned}
    corpora = [source for name, source in CORPORA.items() if name in names]
    if WRITTEN in names:
        contexts = len(acronym_contexts("train"))
    return [*corpora, *([teaching_source(contexts)] if contexts else [])]


def split_scores(model: Any, data: Path | None) -> list[Score]:
    """The scores on every split whose file is in `data`, of which there must be one; none without data."""
    if data is None:
        return []
    return manifest_scores("acronym", model, data, splits_in(data) or SPLITS[:1])


def splits_in(data: Path) -> list[str]:
    """The splits whose file is in `data`."""
    return [split for split in SPLITS if (data / "acronyms" / f"{split}_dev{_suffix(split)}").exists()]


def _suffix(split: str) -> str:
    return ".csv" if split == "casi" else ".json"
