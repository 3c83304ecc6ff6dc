"""Trains the spaces that an objective names and publishes a relation release."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import torch
from rich.console import Console
from safetensors.torch import save_file
from torch import Tensor

from models.encoder.model import Encoder
from models.encoder.weights import ADAPTER, base_digest
from models.relation.model import RelationModel
from models.relation.spaces import UPPER_ADAPTER
from models.releases.manifest import Release, TrainingData
from training.common.loop import TrainingLoop
from training.common.publish import publish_release
from training.common.reference import TextsOf
from training.evaluation.evaluate import manifest_scores
from training.relation.assemble import Encoders, Entities, assemble, find_entities, write_above
from training.relation.data import Corpus, examples, read
from training.relation.settings import Objective, Settings, SupportSizes
from training.relation.spaces.cldr import PairSpace, UpperSpace
from training.relation.spaces.clgs import GraphSpace
from training.relation.spaces.clner import EntitySpace
from training.teaching.readers import teaching_sources

console = Console()
KINDS: dict[Objective, str] = {
    "all": "entities by CLNER, relations by CLDR over them",
    "clner": "entities and relations in CLNER's space",
    "cldr": "relations by CLDR, entities in the plain encoder's space",
    "clgs": "relations by CLGS, entities in the plain encoder's space",
}
CANARY = [
    "Intravenous azithromycin - induced ototoxicity .",
    "Two patients developed agranulocytosis after clozapine; neither had taken aspirin.",
    "No adverse events were seen.",
]
LICENCE = "none stated, citation asked"


class Trained(NamedTuple):
    """What `train` gives."""

    encoders: Encoders
    """with the weights as their stored adapters restore them"""
    entities: Entities
    space: UpperSpace | None
    """of CLDR or CLGS, where one was trained"""


class Trainer:
    """One run: trains what its objective names and writes the adapters into `folder`."""

    def __init__(
        self, settings: Settings, folder: Path, run: Path | None = None, device: torch.device | str = "cpu"
    ) -> None:
        self.settings, self.folder, self.device = settings, folder, torch.device(device)
        self.seconds = 0.0
        self._run = run

    def train(self, objective: Objective, sizes: SupportSizes, corpus: Corpus) -> Trained:
        """CLNER first where it is part of the objective, then CLDR or CLGS over the resulting encoder."""
        console.print(f"{len(corpus.train)} training sentences, {len(corpus.valid)} for validation")
        dense = self._entity_space(corpus) if objective in ("clner", "all") else None
        first = Encoders.load(self.settings, self.folder, dense)
        entities = find_entities(first, corpus, self.settings, sizes)
        if objective == "clner":
            return Trained(first, entities, None)
        space = self._upper_space(objective, corpus, entities)
        return Trained(Encoders.load(self.settings, self.folder, dense), entities, space)

    def _entity_space(self, corpus: Corpus) -> Tensor:
        """CLNER's dense layer, (d, width), after its encoder was written as an adapter."""
        space = EntitySpace(self.settings, corpus, self.device)
        self._fit(space, "clner")
        save_file(space.adapter(), self.folder / ADAPTER)
        space.encoder = Encoder.load(
            self.settings.base, adapter=self.folder / ADAPTER, device=str(self.device)
        )
        scores = ", ".join(f"{k} {v:.4f}" for k, v in space.validate().items())
        console.print(f"as an adapter of rank {self.settings.rank}: {scores}", highlight=False)
        return space.dense.weight.detach().T.contiguous().cpu()

    def _upper_space(self, objective: Objective, corpus: Corpus, entities: Entities) -> UpperSpace:
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
        return space

    def _fit(self, space: EntitySpace | UpperSpace, name: str) -> None:
        loop = TrainingLoop(space, asdict(self.settings), self._run / name if self._run else None, name)
        loop.run()
        self.seconds += loop.seconds


def make(
    objective: Objective,
    settings: Settings,
    sizes: SupportSizes,
    data: Path,
    root: Path,
    run: Path | None = None,
    device: torch.device | str = "cpu",
) -> Release:
    """Trains, scores on the test part of the split, and publishes under `root`."""
    corpus = read(data, settings.split, settings.seed, settings.limit, settings.teaching)
    with tempfile.TemporaryDirectory(prefix="relation-") as name:
        trainer = Trainer(settings, Path(name), run, device)
        encoders, entities, _ = trainer.train(objective, sizes, corpus)
        model = assemble(encoders, corpus, entities, settings, sizes, trainer.folder)
        return _published(trainer, objective, sizes, model, corpus, data, root)


def _published(
    trainer: Trainer,
    objective: Objective,
    sizes: SupportSizes,
    model: RelationModel,
    corpus: Corpus,
    data: Path,
    root: Path,
) -> Release:
    settings = trainer.settings
    has_upper = (trainer.folder / UPPER_ADAPTER).exists()
    configuration = {
        **({"below": settings.frozen_layers(model.spaces.encoder.model)} if has_upper else {}),
        "max_pieces": model.spaces.encoder.max_pieces,
        "k_words": model.voting.k_words,
        "k_pairs": model.voting.k_pairs,
        "vote": model.voting.vote,
        "training": asdict(settings),
        "training_seconds": round(trainer.seconds),
        "support": asdict(sizes),
    }
    return publish_release(
        trainer.folder,
        task="relation",
        kind="nearest training words and pairs: " + KINDS[objective],
        base=settings.base,
        base_sha256=base_digest(settings.base),
        configuration=configuration,
        training_data=_sources(settings.split, corpus),
        canary=CANARY,
        scores=lambda m: manifest_scores("relation", m, data, (settings.split,)),
        root=root,
        reference=TextsOf.some("its training sentences", [text.text for text in corpus.train]),
    )


def _sources(split: str, corpus: Corpus) -> list[TrainingData]:
    """What a release over a split was trained on."""
    part = split.removeprefix("ade_").replace("_", " ")
    names = [
        f"ADE corpus v2 (Gurulingappa et al. 2012), {part} training part",
        "ADE corpus v2, sentences without an adverse event, of four fifths of the abstracts",
    ]
    return [TrainingData(name=name, licence=LICENCE) for name in names] + teaching_sources(corpus.train)
