"""Trains entity-driven contrastive summarization and writes a release: the network, and the words and the
tagger of the guard.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import torch
from rich.console import Console
from safetensors.torch import save_file

from models.encoder.base_files import MINI
from models.ner.model import NerModel
from models.releases.manifest import Release
from models.summarization import medical_entities
from models.summarization.decoding.beam_search import Search
from models.summarization.files import WORDS
from models.summarization.medical_entities import Recogniser
from training.common.loop import TrainingLoop
from training.evaluation.summarization.measure import bundled_tagger
from training.summarization.data import Corpora, read
from training.summarization.ecl.trainer import SummarizerTrainee
from training.summarization.examples import Material, material_of
from training.summarization.messages import patient_sentences
from training.summarization.networks.hub_network import MAX_PIECES, network_of
from training.summarization.networks.network import Network
from training.summarization.release import build, known_words, sources_of
from training.summarization.settings import Settings

console = Console()


class Trained(NamedTuple):
    """A trained network, what it was trained on, and the tagger of the guard."""

    network: Network
    corpora: Corpora
    tagger: Release
    device: str


def make(
    settings: Settings,
    data: Path,
    output: Path,
    *,
    run: Path | None = None,
    device: torch.device | str = "cpu",
) -> Release:
    """Trains, scores on MeQSum's test part, and writes a release under `output`."""
    corpora = read(data, held_out=settings.held_out, seed=settings.seed, limit=settings.limit)
    tagger = bundled_tagger()
    recogniser = medical_entities.recogniser(NerModel.load(tagger, device=str(device)), data / "stanza")
    material = _material(settings, corpora, recogniser, data)
    _print_corpora(corpora, recogniser, material)
    network = network_of(settings, corpora)
    if run is not None:
        run.mkdir(parents=True, exist_ok=True)
        (run / "split.json").write_text(json.dumps(corpora.report, indent=1) + "\n", encoding="utf-8")
    training = train(network, settings, corpora, material, run=run, device=device)
    configuration = {"data": corpora.report | {"entities_by": recogniser.name}, "training": training}
    return _release(Trained(network, corpora, tagger, str(device)), configuration, data, output)


def _material(settings: Settings, corpora: Corpora, recogniser: Recogniser, data: Path) -> Material:
    """What a run with these settings learns from."""
    messages = settings.message_share and (settings.pretraining or settings.replay)
    return material_of(
        corpora,
        recogniser,
        trained=settings.pretraining + settings.epochs > 0,
        sentences=patient_sentences(data) if messages else [],
    )


def train(
    network: Network,
    settings: Settings,
    corpora: Corpora,
    material: Material,
    *,
    run: Path | None = None,
    device: torch.device | str = "cpu",
) -> dict[str, Any]:
    """A whole run with its curve printed; the network ends with the kept weights. Returns its settings."""
    trainee = SummarizerTrainee(network, settings, material, corpora.validation, device)
    identity = asdict(settings) | {
        "data": corpora.report["training_sha256"],
        "pairs": corpora.report["pairs"],
    }
    TrainingLoop(trainee, identity, run).run()
    return identity


def _print_corpora(corpora: Corpora, recogniser: Recogniser, material: Material) -> None:
    """Prints what was removed, and how many summaries have an entity (the focus identification rate)."""
    for name in ("meqsum", "rqe"):
        console.print(f"{name}: {corpora.report[name]}", highlight=False)
    first, then, valid = (len(p) for p in (corpora.pretraining, corpora.training, corpora.validation))
    share = sum(bool(material.entities[p.id]) for p in corpora.training) / max(1, then)
    console.print(
        f"{first} pairs first, {then} of MeQSum, {valid} for validation; focus identification rate "
        f"{share:.3f} by {recogniser.name}, {len(material.dictionary)} entities",
        highlight=False,
        soft_wrap=True,
    )


def _release(trained: Trained, configuration: dict[str, Any], data: Path, output: Path) -> Release:
    """Publishes the network with the words and the tagger of its guard."""
    network = trained.network
    common: dict[str, Any] = {
        "sentence_base": MINI if network.name == "hub" else network.base,
        "focus_base": trained.tagger.manifest.base,
        "max_pieces": MAX_PIECES,
        "search": asdict(Search()),
    }
    with tempfile.TemporaryDirectory(prefix="summarization-") as name:
        _write(Path(name), trained)
        return build(
            Path(name),
            kind=f"ECL: {network.name} decoder; guard over named entities, extractive where it fails",
            base=network.base,
            configuration=network.configuration() | common | configuration,
            training_data=sources_of(configuration),
            data=data,
            root=output,
            device=trained.device,
        )


def _write(folder: Path, trained: Trained) -> None:
    for name, tensors in trained.network.files().items():
        save_file(tensors, folder / name)
    (folder / WORDS).write_text("\n".join(["word", *known_words(trained.corpora)]) + "\n", encoding="utf-8")
    medical_entities.write(folder, trained.tagger)
