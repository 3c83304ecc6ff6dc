"""Trains entity-driven contrastive summarization and writes a release: the network, the words and the tagger
of the guard, and the question templates where they are used.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from safetensors.torch import save_file

from models.ner.model import NerModel
from models.releases.manifest import Release
from models.releases.store import open_release
from models.summarization import medical_entities
from models.summarization.decoding.beam_search import Search
from models.summarization.medical_entities import Recogniser
from models.summarization.model import WORDS
from training.common.loop import TrainingLoop
from training.evaluation.summarization.measure import bundled_tagger
from training.summarization import question_types
from training.summarization.data import Corpora, read, with_written
from training.summarization.ecl.trainer import SummarizerTrainee
from training.summarization.examples import Material, material_of
from training.summarization.messages import patient_sentences
from training.summarization.networks.hub_network import MAX_PIECES, network_of
from training.summarization.networks.network import Network
from training.summarization.question_types import Choice
from training.summarization.release import known_words, publish, sources_of
from training.summarization.selection import Forms, Trained, best_search, forms_of, sentence_base
from training.summarization.settings import ReleaseOptions, Settings

console = Console()


def make(
    settings: Settings,
    options: ReleaseOptions,
    data: Path,
    output: Path,
    *,
    run: Path | None = None,
    start: Path | None = None,
    device: torch.device | str = "cpu",
) -> Release:
    """Trains, scores on MeQSum's test part, and writes a release under `output`."""
    corpora = read(
        data, held_out=settings.held_out, seed=settings.seed, denoise=settings.denoise, limit=settings.limit
    )
    if settings.teaching:
        corpora = with_written(corpora, data, held_out=settings.held_out, limit=settings.limit)
    tagger = open_release(options.tagger) if options.tagger else bundled_tagger()
    recogniser = medical_entities.recogniser(NerModel.load(tagger, device=str(device)), data / "stanza")
    material = _material(settings, corpora, recogniser, data)
    _print_corpora(corpora, recogniser, material)
    network = network_of(settings, corpora)
    if run is not None:
        run.mkdir(parents=True, exist_ok=True)
        (run / "split.json").write_text(json.dumps(corpora.report, indent=1) + "\n", encoding="utf-8")
    training = train(network, settings, corpora, material, run=run, start=start, device=device)
    configuration = {"data": corpora.report | {"entities_by": recogniser.name}} | training
    trained = Trained(network, tagger, corpora, material, str(device))
    return _release(trained, options, configuration, data, output)


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
    start: Path | None = None,
    device: torch.device | str = "cpu",
) -> dict[str, Any]:
    """A whole run with its curve printed; the network ends with the kept weights, or with those that it
    started from. Returns the settings of both.
    """
    trainee = SummarizerTrainee(network, settings, material, corpora.validation, device)
    if start is not None:
        trainee.start_from(start)
    identity = asdict(settings) | {
        "data": corpora.report["training_sha256"],
        "pairs": corpora.report["pairs"],
    }
    TrainingLoop(trainee, identity, run).run()
    return {"training": identity} | ({"start": trainee.start} if trainee.start else {})


def _print_corpora(corpora: Corpora, recogniser: Recogniser, material: Material) -> None:
    """Prints what was removed, and how many summaries have an entity (the focus identification rate)."""
    for name in ("meqsum", "rqe", *(["teaching"] if "teaching" in corpora.report else [])):
        console.print(f"{name}: {corpora.report[name]}", highlight=False)
    first, then, valid = (len(p) for p in (corpora.pretraining, corpora.training, corpora.validation))
    written = corpora.report["pairs"].get("teaching", 0)
    share = sum(bool(material.entities[p.id]) for p in corpora.training) / max(1, then)
    console.print(
        f"{first} pairs first, {then - written} of MeQSum and {written} written ones, {valid} for "
        f"validation; focus identification rate {share:.3f} by {recogniser.name}, "
        f"{len(material.dictionary)} entities",
        highlight=False,
        soft_wrap=True,
    )


def _release(
    trained: Trained, options: ReleaseOptions, configuration: dict[str, Any], data: Path, output: Path
) -> Release:
    """Chooses how the network writes, and publishes it."""
    beams = (options.beams,) if options.beams else (4, 1)
    searches = [Search(beams=b, length_penalty=options.length_penalty) for b in beams]
    search, searched = best_search(trained, searches)
    if searched:
        console.print(f"ROUGE-1 on the held-out part by beams: {searched}", highlight=False)
    forms, choice = forms_of(trained, search, options.choose)
    if choice:
        console.print(
            f"ROUGE-1 on the held-out part by the way of choosing: {choice.scores}", highlight=False
        )
    network = trained.network
    common: dict[str, Any] = {
        "sentence_base": sentence_base(network),
        "focus_base": trained.tagger.manifest.base,
        "max_pieces": MAX_PIECES,
        "search": asdict(search),
        "searched": searched,
    }
    with tempfile.TemporaryDirectory(prefix="summarization-") as name:
        _write(Path(name), trained, forms)
        return publish(
            Path(name),
            kind=_kind(network, forms),
            base=network.base,
            configuration=network.configuration() | common | configuration | _chosen(forms, choice),
            training_data=sources_of(configuration),
            data=data,
            root=output,
            device=trained.device,
        )


def _write(folder: Path, trained: Trained, forms: Forms | None) -> None:
    for name, tensors in trained.network.files().items():
        save_file(tensors, folder / name)
    known = known_words(trained.corpora, forms.templates.templates if forms else ())
    (folder / WORDS).write_text("\n".join(["word", *known]) + "\n", encoding="utf-8")
    medical_entities.write(folder, trained.tagger)
    if forms:
        question_types.save(forms.templates, folder)


def _kind(network: Network, forms: Forms | None) -> str:
    kind = f"ECL: {network.name} decoder"
    if forms:
        kind += " and forms, ranked" if forms.weights else ", forms alone answer"
    return f"{kind}; guard over named entities, extractive where it fails"


def _chosen(forms: Forms | None, choice: Choice | None) -> dict[str, Any]:
    """What a configuration holds of the ranker and of the way of choosing."""
    ranker = {"ranker": forms.weights} if forms else {}
    return ranker | ({"choice": choice._asdict()} if choice else {})
