"""Trains a space and builds a relation release, or makes one again with today's drug names."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import typer
from safetensors.torch import save_file
from torch import Tensor

from models import drugs
from models.drift import REFERENCE
from models.encoder.base_files import base_digest
from models.encoder.capabilities import Need
from models.encoder.layers import over
from models.encoder.model import Encoder
from models.encoder.weights import ADAPTER
from models.relation.model import RelationModel
from models.relation.spaces import UPPER_ADAPTER, EmbeddingSpaces
from models.relation.support_set import SupportSet
from models.releases.manifest import Release, ReleaseError, TrainingData
from training.common import adapter
from training.common.build import build_release
from training.common.corpora import ADE_NEGATIVES, ade_corpus
from training.common.loop import TrainingLoop
from training.common.program import check_base
from training.common.reference import TextsOf
from training.evaluation.evaluate import manifest_scores
from training.evaluation.relation import SPLITS
from training.recipes.stages import Place, Task
from training.relation.cldr import PairSpace, with_wrong_pairs
from training.relation.clgs import GraphSpace
from training.relation.clner import EntitySpace
from training.relation.data import Corpus, Example, examples, read
from training.relation.network import half_of
from training.relation.settings import Settings
from training.relation.support import (
    Parts,
    ValidationPairs,
    found_pairs,
    validation_pairs,
    with_pairs,
    with_words,
)
from training.relation.train import Space
from training.teaching.readers import teaching_sources

KINDS = {
    "clner": "entities and relations in CLNER's space",
    "cldr": "relations by CLDR over its entities",
    "clgs": "relations by CLGS over its entities",
}
CANARY = [
    "Intravenous azithromycin - induced ototoxicity .",
    "Two patients developed agranulocytosis after clozapine; neither had taken aspirin.",
    "No adverse events were seen.",
]


class Run:
    """One run, whose files are collected in `folder`."""

    def __init__(self, settings: Settings, place: Place, folder: Path) -> None:
        """Raises ReleaseError where the release to begin with is of another task or base."""
        self.settings, self.place, self.folder, self.seconds = settings, place, folder, 0.0
        self.corpus = read(place.data, asdict(settings))
        start = place.start
        if start is None:
            return
        if (start.task, start.manifest.base) != ("relation", settings.base):
            raise ReleaseError(f"{start.version}: no relation release over {settings.base} to begin with")
        self.seconds = start.manifest.configuration["training_seconds"]
        if ADAPTER in start.manifest.files:
            shutil.copyfile(start.file(ADAPTER), folder / ADAPTER)

    def make(self) -> Parts:
        """Trains, and writes what a release holds but the drug names."""
        parts = self._tagger()
        valid, train = validation_pairs(parts, self.corpus), examples(self.corpus.train, parts.spaces.encoder)
        if not self.corpus.negatives:
            train = with_wrong_pairs(train, self.settings.seed)
        train += found_pairs(parts, self.corpus.negatives)
        if self.settings.objective != "clner":
            parts = replace(parts, spaces=self._spaces_above(parts, train, valid))
        parts = with_pairs(parts, train, valid, self.corpus.sources)
        self._write(parts)
        return parts

    def _encoder(self, file: str = ADAPTER) -> Encoder:
        path = self.folder / file
        return Encoder.load(
            self.settings.base, device=str(self.place.device), adapter=path if path.exists() else None
        )

    def _tagger(self) -> Parts:
        """CLNER, that of the release to begin with, or the neighbours in the space of the base."""
        if self.place.start is not None:
            model = RelationModel.load(self.place.start, device=str(self.place.device))
            return Parts(model.spaces, model.support, model.voting)
        dense = torch.eye(self._encoder().dimension)
        if self.settings.objective == "clner":
            space = EntitySpace(self.settings, self.corpus, self.place.device)
            self._fit(space)
            save_file(space.adapter(), self.folder / ADAPTER)
            dense = space.dense.weight.detach().T.cpu()
        spaces = EmbeddingSpaces(self._encoder(), np.ascontiguousarray(dense.numpy()))
        return with_words(spaces, self.corpus, self.settings.seed, joint=self.settings.heads)

    def _spaces_above(self, parts: Parts, train: list[Example], valid: ValidationPairs) -> EmbeddingSpaces:
        """The spaces with the upper layers of CLDR or CLGS, as they are stored."""
        encoder, device = self._encoder(), self.place.device
        space: PairSpace | GraphSpace
        if self.settings.objective == "cldr":
            space = PairSpace(self.settings, encoder, train, valid, device)
        else:
            space = GraphSpace(self.settings, encoder, train, examples(self.corpus.valid, encoder), device)
        self._fit(space)
        changes = adapter.quantized(Encoder.load(self.settings.base).model, space.encoder.model)
        trained = {name for name, p in space.encoder.model.named_parameters() if p.requires_grad}
        upper = {name: t for name, t in changes.items() if name.rpartition(".")[0] in trained}
        save_file(upper, self.folder / UPPER_ADAPTER)
        whole = over(encoder, self._encoder(UPPER_ADAPTER), space.frozen)
        return EmbeddingSpaces(encoder, parts.spaces.projection, pair_encoder=whole)

    def _fit(self, space: Space) -> None:
        start = self.place.start.version if self.place.start else ""
        identity = asdict(self.settings) | {"start": start}
        loop = TrainingLoop(space, identity, self.place.checkpoints, self.settings.objective)
        loop.run()
        self.seconds += loop.seconds

    def _write(self, parts: Parts) -> None:
        save_file(tensors_of(parts), self.folder / "support.safetensors")
        (self.folder / "pairs.tsv").write_text(pairs_table(parts.support), encoding="utf-8")

    def configuration(self, parts: Parts) -> dict[str, Any]:
        """Of the release; `before` are the settings of the run that made what this one began with."""
        start = self.place.start
        before = {"start": start.version, "before": start.manifest.configuration["training"]} if start else {}
        return {
            **({"below": half_of(self._encoder())} if parts.spaces.pair_encoder else {}),
            "max_pieces": parts.spaces.encoder.max_pieces,
            **asdict(parts.voting),
            "training": asdict(self.settings) | before,
            "training_seconds": round(self.seconds),
        }


def make(settings: Settings, place: Place) -> Release:
    """Trains, scores on the test part of the split, and builds under `place.output`."""
    if settings.objective == "clner" and place.start is not None:
        raise typer.BadParameter("CLNER begins with the base: only the first stage can train it")
    with tempfile.TemporaryDirectory(prefix="relation-") as name:
        run = Run(settings, place, Path(name))
        parts = run.make()
        earlier = place.start.manifest.training_data if place.start else []
        stated = {
            "kind": "nearest training words and pairs: " + KINDS[settings.objective],
            "base": settings.base,
            "base_sha256": base_digest(settings.base),
            "training_data": list(dict.fromkeys([*earlier, *_sources(settings, run.corpus)])),
            "canary": CANARY,
        }
        return _built(run.folder, stated, run.configuration(parts), run.corpus, place)


def refreshed(release: Release, place: Place) -> Release:
    """A copy of the release with the drug names of today's lexicon. Nothing is trained; scores and reference
    are made anew from the corpora that it was trained on.
    """
    manifest = release.manifest
    with tempfile.TemporaryDirectory(prefix="relation-") as name:
        folder = Path(name)
        for file in manifest.files.keys() - {REFERENCE, drugs.RELEASE_FILE}:
            shutil.copyfile(release.file(file), folder / file)
        stated = {name: getattr(manifest, name) for name in ("kind", "base", "base_sha256", "training_data")}
        stated["canary"] = manifest.canary.inputs
        configuration = manifest.configuration | {"like": release.version}
        return _built(folder, stated, configuration, read(place.data, configuration["training"]), place)


def _built(
    folder: Path, stated: dict[str, Any], configuration: dict[str, Any], corpus: Corpus, place: Place
) -> Release:
    shutil.copyfile(drugs.BUNDLED, folder / drugs.RELEASE_FILE)
    texts = [text.text for text in corpus.train + corpus.negatives]
    splits = [configuration["training"]["split"]]
    scores = partial(manifest_scores, "relation", data=place.data, splits=splits)
    return build_release(
        folder,
        task="relation",
        configuration=configuration,
        scores=scores if place.is_scored else None,
        root=place.output,
        device=place.device,
        reference=TextsOf.some("its training sentences with and without an event", texts),
        **stated,
    )


def _sources(settings: Settings, corpus: Corpus) -> list[TrainingData]:
    negatives = [ADE_NEGATIVES] if corpus.negatives else []
    return [ade_corpus(settings.split), *negatives, *teaching_sources(corpus.train)]


def pairs_table(support: SupportSet) -> str:
    """The table of a release's training pairs in words."""
    lines = ["sentence\tdrug\teffect\trelated\tsource\n"]
    for pair, related in zip(support.named, support.related.tolist(), strict=True):
        lines.append(f"{pair.sentence}\t{pair.drug}\t{pair.effect}\t{int(related)}\t{pair.source}\n")
    return "".join(lines)


def tensors_of(parts: Parts) -> dict[str, Tensor]:
    """The tensors of a release's support file."""
    support = parts.support
    halves = {
        "projection": parts.spaces.projection,
        "pair_projection": parts.spaces.pair_projection,
        "words": support.words,
        "pairs": support.pairs,
    }
    tensors = {name: torch.from_numpy(array).half() for name, array in halves.items()}
    for name, numbers in (("tags", support.tags), ("related", support.related)):
        tensors[name] = torch.from_numpy(numbers).to(torch.uint8)
    if support.transitions is not None:
        tensors["transitions"] = torch.from_numpy(support.transitions)
    return tensors


def check(settings: Settings) -> None:
    """Raises typer.BadParameter for a split that is none, and for a base that cannot be split."""
    if settings.split not in SPLITS:
        raise typer.BadParameter(f"no split {settings.split!r} of the ADE corpus")
    check_base(settings.base, Need(is_split=True))


TASK = Task(Settings, check, make, refresh=refreshed)
