"""Trains a space and builds a relation release, or makes one again in today's form."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import asdict
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
import typer
from safetensors.torch import save_file
from torch import Tensor

from models.drugs import bundled_lexicon
from models.encoder.base_files import base_digest
from models.encoder.capabilities import Need
from models.encoder.layers import over
from models.encoder.model import Encoder
from models.encoder.weights import ADAPTER
from models.relation.model import SUPPORT, UPPER_ADAPTER, RelationModel
from models.relation.pairs import LABELS
from models.relation.support_set import SupportSet
from models.releases.manifest import Release, ReleaseError, TrainingData
from models.releases.tensors import read_tensors
from models.types import ADE, DRUG, Case, Mention
from training.common import adapter
from training.common.build import build_release
from training.common.corpora import ADE_NEGATIVES, ade_corpus
from training.common.loop import TrainingLoop
from training.common.program import check_base
from training.common.reference import TextsOf
from training.evaluation.evaluate import manifest_scores
from training.evaluation.relation import SPLITS, split_texts
from training.recipes.stages import Place, Task
from training.relation.cldr import PairSpace, with_wrong_pairs
from training.relation.clgs import GraphSpace
from training.relation.clner import EntitySpace
from training.relation.data import Corpus, Example, examples, read
from training.relation.network import half_of
from training.relation.settings import Settings
from training.relation.support import ValidationPairs, console, with_pairs
from training.relation.tagger import Tagger, found_pairs, mention_f1, tagger_of, validation_pairs
from training.relation.train import Space
from training.teaching.readers import teaching_sources

_KIND = "relations by nearest training pairs: "
#: The tensor of a release of CLNER with which the next stage finds the words of the entity space again.
_ENTITIES = "projection"
_FILES = {ADAPTER, UPPER_ADAPTER, "pairs.tsv"}
_TENSORS = {"pairs", "related", "pair_projection"}


def _case(text: str, *mentions: tuple[str, str]) -> Case:
    """A text with its mentions by surface form and label."""
    places = [(text.index(surface), surface, label) for surface, label in mentions]
    generic = bundled_lexicon().generic
    return Case(text, tuple(Mention(at, at + len(s), s, label, 1.0, generic(s)) for at, s, label in places))


CANARY = [
    _case("Intravenous azithromycin - induced ototoxicity .", ("azithromycin", DRUG), ("ototoxicity", ADE)),
    _case(
        "Two patients developed agranulocytosis after clozapine; neither had taken aspirin.",
        ("agranulocytosis", ADE),
        ("clozapine", DRUG),
        ("aspirin", DRUG),
    ),
    _case("No adverse events were seen."),
]


class Run:
    """One run, whose files are collected in `folder`."""

    def __init__(self, settings: Settings, place: Place, folder: Path) -> None:
        """Raises ReleaseError where the release to begin with is of another task, base or objective."""
        self.settings, self.place, self.folder, self.seconds = settings, place, folder, 0.0
        self.corpus = read(place.data, asdict(settings))
        self.dense: Tensor | None = None
        start = place.start
        if start is None:
            return
        if (start.task, start.manifest.base) != ("relation", settings.base):
            raise ReleaseError(f"{start.version}: no relation release over {settings.base} to begin with")
        self.dense = read_tensors(start.file(SUPPORT)).get(_ENTITIES)
        if self.dense is None:
            raise ReleaseError(f"{start.version}: no release of CLNER, whose entities a run begins with")
        self.seconds = start.manifest.configuration["training_seconds"]
        if ADAPTER in start.manifest.files:
            shutil.copyfile(start.file(ADAPTER), folder / ADAPTER)

    def make(self) -> RelationModel:
        """Trains, and writes what a release holds."""
        tagger = self._tagger()
        encoder = tagger.encoder
        valid, train = validation_pairs(tagger, self.corpus), examples(self.corpus.train, encoder)
        if not self.corpus.negatives:
            train = with_wrong_pairs(train, self.settings.seed)
        train += found_pairs(tagger, self.corpus.negatives)
        tensors = {}
        if self.settings.objective == "clner":
            tensors[_ENTITIES] = torch.from_numpy(tagger.projection).half()
        else:
            encoder = self._encoder_above(encoder, train, valid)
        model = with_pairs(encoder, train, valid, self.corpus.sources)
        save_file(tensors | tensors_of(model), self.folder / SUPPORT)
        (self.folder / "pairs.tsv").write_text(pairs_table(model.support), encoding="utf-8")
        return model

    def _encoder(self, file: str = ADAPTER) -> Encoder:
        path = self.folder / file
        return Encoder.load(
            self.settings.base, device=str(self.place.device), adapter=path if path.exists() else None
        )

    def _tagger(self) -> Tagger:
        """CLNER, that of the release to begin with, or the neighbours in the space of the base."""
        dense = self.dense
        if self.settings.objective == "clner":
            space = EntitySpace(self.settings, self.corpus, self.place.device)
            self._fit(space)
            save_file(space.adapter(), self.folder / ADAPTER)
            dense = space.dense.weight.detach().T.cpu()
        encoder = self._encoder()
        if dense is None:
            dense = torch.eye(encoder.dimension)
        projection = np.ascontiguousarray(dense.float().numpy())
        tagger = tagger_of(encoder, projection, self.corpus, self.settings.seed, joint=self.settings.heads)
        if self.settings.objective == "clner":
            self._print_scores(tagger)
        return tagger

    def _print_scores(self, tagger: Tagger) -> None:
        """Of the mentions in the test part of the split, which the papers compare."""
        data = examples(split_texts(self.place.data / "ade", self.settings.split)[1], tagger.encoder)
        tags = tagger.tag(data)
        macro, micro = fmean(mention_f1(tags, data, [label]) for label in LABELS), mention_f1(tags, data)
        found = f"mentions of {self.settings.split}: strict macro F1 {macro:.4f}, micro {micro:.4f}"
        console.print(found, highlight=False, soft_wrap=True)

    def _encoder_above(self, encoder: Encoder, train: list[Example], valid: ValidationPairs) -> Encoder:
        """The encoder with the upper layers of CLDR or CLGS, as they are stored."""
        device = self.place.device
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
        return over(encoder, self._encoder(UPPER_ADAPTER), space.frozen)

    def _fit(self, space: Space) -> None:
        start = self.place.start.version if self.place.start else ""
        identity = asdict(self.settings) | {"start": start}
        loop = TrainingLoop(space, identity, self.place.checkpoints, self.settings.objective)
        loop.run()
        self.seconds += loop.seconds

    def configuration(self, model: RelationModel) -> dict[str, Any]:
        """Of the release; `before` are the settings of the run that made what this one began with."""
        start = self.place.start
        before = {"start": start.version, "before": start.manifest.configuration["training"]} if start else {}
        return {
            **({"below": half_of(self._encoder())} if self.settings.objective != "clner" else {}),
            "max_pieces": model.encoder.max_pieces,
            **asdict(model.voting),
            "training": asdict(self.settings) | before,
            "training_seconds": round(self.seconds),
        }


def make(settings: Settings, place: Place) -> Release:
    """Trains, scores on the test part of the split, and builds under `place.output`."""
    if settings.objective == "clner" and place.start is not None:
        raise typer.BadParameter("CLNER begins with the base: only the first stage can train it")
    with tempfile.TemporaryDirectory(prefix="relation-") as name:
        run = Run(settings, place, Path(name))
        model = run.make()
        earlier = place.start.manifest.training_data if place.start else []
        stated = {
            "kind": _KIND + settings.objective.upper(),
            "base": settings.base,
            "base_sha256": base_digest(settings.base),
            "training_data": list(dict.fromkeys([*earlier, *_sources(settings, run.corpus)])),
        }
        return _built(run.folder, stated, run.configuration(model), run.corpus, place)


def refreshed(release: Release, place: Place) -> Release:
    """The release with the files, canary and kind of today's releases. Nothing is trained; scores and
    reference are made anew from the corpora that it was trained on.
    """
    manifest = release.manifest
    with tempfile.TemporaryDirectory(prefix="relation-") as name:
        folder = Path(name)
        for file in manifest.files.keys() & _FILES:
            shutil.copyfile(release.file(file), folder / file)
        # Releases of earlier versions, which state no objective, relate by CLDR.
        objective = manifest.configuration["training"].get("objective", "cldr")
        kept = _TENSORS | ({_ENTITIES} if objective == "clner" else set())
        tensors = read_tensors(release.file(SUPPORT))
        save_file({n: t for n, t in tensors.items() if n in kept}, folder / SUPPORT)
        stated = {name: getattr(manifest, name) for name in ("base", "base_sha256", "training_data")}
        stated["kind"] = _KIND + objective.upper()
        configuration = manifest.configuration | {"like": release.version}
        configuration.pop("k_words", None)
        return _built(folder, stated, configuration, read(place.data, configuration["training"]), place)


def _built(
    folder: Path, stated: dict[str, Any], configuration: dict[str, Any], corpus: Corpus, place: Place
) -> Release:
    texts = [text.text for text in corpus.train + corpus.negatives]
    splits = [configuration["training"]["split"]]
    scores = partial(manifest_scores, "relation", data=place.data, splits=splits)
    return build_release(
        folder,
        task="relation",
        configuration=configuration,
        canary=CANARY,
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


def tensors_of(model: RelationModel) -> dict[str, Tensor]:
    """The tensors of a release's support file."""
    return {
        "pair_projection": torch.from_numpy(model.projection).half(),
        "pairs": torch.from_numpy(model.support.pairs).half(),
        "related": torch.from_numpy(model.support.related).to(torch.uint8),
    }


def check(settings: Settings) -> None:
    """Raises typer.BadParameter for a split that is none, and for a base that cannot be split."""
    if settings.split not in SPLITS:
        raise typer.BadParameter(f"no split {settings.split!r} of the ADE corpus")
    check_base(settings.base, Need(is_split=True))


TASK = Task(Settings, check, make, refresh=refreshed)
