"""Trains the spaces that an objective names and builds a relation release."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import torch
from rich.console import Console
from safetensors.torch import save_file
from torch import Tensor

from models import drugs
from models.drift import REFERENCE
from models.encoder.base_files import base_digest
from models.encoder.model import Encoder
from models.encoder.weights import ADAPTER
from models.relation.model import RelationModel
from models.relation.neighbours import TokenHead
from models.relation.sentence_head import SentenceHead
from models.relation.spaces import UPPER_ADAPTER
from models.releases.manifest import Release, ReleaseError, TrainingData
from training.common.build import build_release
from training.common.corpora import ADE_NEGATIVES, ade_corpus
from training.common.loop import TrainingLoop
from training.common.reference import TextsOf
from training.relation.assemble import Encoders, Entities, assemble, find_entities, write_above
from training.relation.data import Corpus, corpus_of, examples
from training.relation.heads.event import write_event_head
from training.relation.heads.threshold import choose_event_threshold
from training.relation.heads.token_head import head_of
from training.relation.settings import Objective, Settings, frozen_layers
from training.relation.spaces.cldr import PairSpace, UpperSpace
from training.relation.spaces.clgs import GraphSpace
from training.relation.spaces.clner import EntitySpace
from training.relation.written import release_scores
from training.teaching.readers import teaching_sources

console = Console()
KINDS: dict[Objective, str] = {
    "all": "entities by CLNER, relations by CLDR over them",
    "clner": "entities and relations in CLNER's space",
    "cldr": "relations by CLDR, entities in the plain encoder's space",
    "clgs": "relations by CLGS, entities in the plain encoder's space",
}
#: The texts that the reference of a release is made from.
READ = "its training sentences with and without an event"
CANARY = [
    "Intravenous azithromycin - induced ototoxicity .",
    "Two patients developed agranulocytosis after clozapine; neither had taken aspirin.",
    "No adverse events were seen.",
]


class Trained(NamedTuple):
    """What `train` gives."""

    encoders: Encoders
    """with the weights as their stored adapters restore them"""
    entities: Entities
    sentence_head: SentenceHead | None


class Trainer:
    """One run: trains what its objective names and writes the adapters into `folder`."""

    def __init__(
        self, settings: Settings, folder: Path, run: Path | None = None, device: torch.device | str = "cpu"
    ) -> None:
        self.settings, self.folder, self.device = settings, folder, torch.device(device)
        self.seconds = 0.0
        self._run = run
        self._beside: dict[str, Any] = {}
        self._sentence_head: SentenceHead | None = None

    def train(self, objective: Objective, corpus: Corpus) -> Trained:
        """CLNER first where it is part of the objective, then CLDR or CLGS over the resulting encoder."""
        console.print(f"{len(corpus.train)} training sentences, {len(corpus.valid)} for validation")
        dense, head = None, None
        if objective in ("clner", "all"):
            dense, head = self._entity_space(corpus)
        encoders = Encoders.load(self.settings, self.folder, dense, self.device, head)
        entities = find_entities(encoders, corpus, self.settings)
        if objective != "clner":
            # CLNER's own training is the same for each objective; what is trained over it is not.
            self._beside = {"objective": objective}
            self._upper_space(objective, corpus, entities)
            encoders = Encoders.load(self.settings, self.folder, dense, self.device, head)
        return Trained(encoders, entities, self._sentence_head)

    def _entity_space(self, corpus: Corpus) -> tuple[Tensor, TokenHead | None]:
        """CLNER's dense layer, (d, width), and its head where it was trained, after its encoder was written
        as an adapter.
        """
        space = EntitySpace(self.settings, corpus, self.device)
        self._fit(space, "clner")
        save_file(space.adapter(), self.folder / ADAPTER)
        space.encoder = Encoder.load(
            self.settings.base, adapter=self.folder / ADAPTER, device=str(self.device)
        )
        scores = ", ".join(f"{k} {v:.4f}" for k, v in space.scores().items())
        console.print(f"as it is stored: {scores}", highlight=False)
        if space.event is not None:
            self._sentence_head = SentenceHead(write_event_head(space.event, self.folder))
        head = head_of(space.head) if self.settings.cross_entropy else None
        return space.dense.weight.detach().T.contiguous().cpu(), head

    def _upper_space(self, objective: Objective, corpus: Corpus, entities: Entities) -> None:
        path = self.folder / ADAPTER
        encoder = Encoder.load(
            self.settings.base, adapter=path if path.exists() else None, device=str(self.device)
        )
        sentences = examples(corpus.train, encoder) + entities.negatives
        space: UpperSpace
        if objective == "clgs":
            valid = examples(corpus.valid, encoder)
            space = GraphSpace(self.settings, encoder, sentences, valid, self.device)
        else:
            space = PairSpace(self.settings, encoder, sentences, entities.valid, self.device)
        self._fit(space, "clgs" if objective == "clgs" else "cldr")
        write_above(self.settings, space.upper, self.folder)

    def _fit(self, space: EntitySpace | UpperSpace, name: str) -> None:
        identity = asdict(self.settings) | self._beside
        loop = TrainingLoop(space, identity, self._run / name if self._run else None, name)
        loop.run()
        self.seconds += loop.seconds


def make(
    objective: Objective,
    settings: Settings,
    data: Path | None,
    root: Path,
    run: Path | None = None,
    device: torch.device | str = "cpu",
) -> Release:
    """Trains, scores on the test part of the split, and builds under `root`."""
    corpus = corpus_of(asdict(settings), data)
    with tempfile.TemporaryDirectory(prefix="relation-") as name:
        trainer = Trainer(settings, Path(name), run, device)
        trained = trainer.train(objective, corpus)
        model = assemble(trained.encoders, corpus, trained.entities, trainer.folder)
        if trained.sentence_head is not None:
            model.sentence_head = trained.sentence_head
            choose_event_threshold(model, corpus.valid, corpus.valid_negatives)
        configuration = _configuration(trainer, model)
        stated = {
            "kind": "nearest training words and pairs: " + KINDS[objective],
            "base": settings.base,
            "base_sha256": base_digest(settings.base),
            "training_data": _sources(settings, corpus),
            "canary": CANARY,
        }
        return _built(trainer.folder, stated, configuration, corpus, data, root, trainer.device)


def renamed(release: Release, data: Path | None, root: Path, device: torch.device | str = "cpu") -> Release:
    """Publishes a copy of the release with the drug names of today's lexicon under `root`. Nothing is
    trained; scores and reference are made anew from the corpora that it was trained on. Raises ReleaseError
    for another task.
    """
    manifest = release.manifest
    if manifest.task != "relation":
        raise ReleaseError(f"{release.version} is a release of {manifest.task}, not of relation")
    corpus = corpus_of(manifest.configuration["training"], data)
    with tempfile.TemporaryDirectory(prefix="relation-") as name:
        folder = Path(name)
        for file in manifest.files.keys() - {REFERENCE, drugs.RELEASE_FILE}:
            shutil.copyfile(release.file(file), folder / file)
        shutil.copyfile(drugs.BUNDLED, folder / drugs.RELEASE_FILE)
        configuration = manifest.configuration | {"like": release.version}
        stated = {name: getattr(manifest, name) for name in ("kind", "base", "base_sha256", "training_data")}
        stated["canary"] = manifest.canary.inputs
        return _built(folder, stated, configuration, corpus, data, root, device)


def _built(
    folder: Path,
    stated: dict[str, Any],
    configuration: dict[str, Any],
    corpus: Corpus,
    data: Path | None,
    root: Path,
    device: torch.device | str,
) -> Release:
    return build_release(
        folder,
        task="relation",
        configuration=configuration,
        scores=lambda model: release_scores(model, configuration["training"], data),
        root=root,
        device=device,
        reference=TextsOf.some(READ, [text.text for text in corpus.train + corpus.negatives]),
        **stated,
    )


def _configuration(trainer: Trainer, model: RelationModel) -> dict[str, Any]:
    encoder, voting = model.spaces.encoder, model.voting
    has_upper = (trainer.folder / UPPER_ADAPTER).exists()
    return {
        **({"below": frozen_layers(encoder.model)} if has_upper else {}),
        "max_pieces": encoder.max_pieces,
        "k_words": voting.k_words,
        "k_pairs": voting.k_pairs,
        "words_share": voting.words_share,
        "threshold": voting.threshold,
        **({"event_threshold": voting.event_threshold} if model.sentence_head else {}),
        "training": asdict(trainer.settings),
        "training_seconds": round(trainer.seconds),
    }


def _sources(settings: Settings, corpus: Corpus) -> list[TrainingData]:
    """What a release was trained on."""
    unseen = {t.id for t in corpus.valid + corpus.valid_negatives}
    taught = {t.id: t for t in [*corpus.train, *corpus.negatives] if t.id not in unseen}.values()
    public = [ade_corpus(settings.split), ADE_NEGATIVES] if settings.corpora == "ade" else []
    return [*public, *teaching_sources(taught)]
