"""Trains the spaces that an objective names and publishes a relation release."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import torch
import typer
from rich.console import Console
from safetensors.torch import save_file
from torch import Tensor

from models.drift import REFERENCE
from models.encoder.base_files import base_digest
from models.encoder.model import Encoder
from models.encoder.split.layer_split import SplitEncoder
from models.encoder.weights import ADAPTER
from models.relation.model import RelationModel
from models.relation.neighbours import HEAD, TokenHead
from models.relation.sentence_head import SENTENCE_ADAPTER, SENTENCE_HEAD
from models.relation.spaces import UPPER_ADAPTER
from models.releases.manifest import Release, ReleaseError, TrainingData
from models.releases.store import open_release
from models.releases.tensors import read_tensors
from training.common.corpora import ADE_NEGATIVES, GoldText, ade_corpus
from training.common.loop import TrainingLoop
from training.common.precision import mixed
from training.common.pretrained import read_sources
from training.common.publish import publish_release
from training.common.reference import TextsOf
from training.evaluation.relation import pairs
from training.relation.assemble import Encoders, Entities, assemble, find_entities, with_support, write_above
from training.relation.data import Corpus, corpus_of, examples
from training.relation.heads.sentence import (
    SentenceSpace,
    read_event_head,
    taught_texts,
    texts_of,
    write_event_head,
)
from training.relation.heads.threshold import choose_event_threshold
from training.relation.heads.token_head import head_of
from training.relation.settings import Objective, Settings, SupportSizes
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
#: Batch size of the search for pairs in sentences.
READ_AT_ONCE = 1024
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
        self._beside: dict[str, Any] = {}

    def train(self, objective: Objective, sizes: SupportSizes, corpus: Corpus) -> Trained:
        """CLNER first where it is part of the objective, then CLDR or CLGS over the resulting encoder."""
        console.print(f"{len(corpus.train)} training sentences, {len(corpus.valid)} for validation")
        dense, head = None, None
        if self.settings.start:
            dense, head = self._started(objective)
        elif objective in ("clner", "all"):
            dense, head = self._entity_space(corpus)
        first = Encoders.load(self.settings, self.folder, dense, self.device, head)
        entities = find_entities(first, corpus, self.settings, sizes)
        if objective == "clner" or self.settings.start:
            return Trained(first, entities, None)
        # CLNER's own training is the same for each objective; what is trained over it is not.
        self._beside = {"objective": objective, "support": asdict(sizes)}
        space = self._upper_space(objective, corpus, entities)
        encoders = Encoders.load(self.settings, self.folder, dense, self.device, head)
        return Trained(encoders, entities, space)

    def started(self, objective: Objective, corpus: Corpus) -> tuple[RelationModel, list[GoldText]]:
        """The model of the release to start with, after its files were copied, and the training sentences
        without an event in which it finds a pair; prints how many.
        """
        dense, head = self._started(objective)
        encoders = Encoders.load(self.settings, self.folder, dense, self.device, head)
        model = with_support(encoders, open_release(Path(self.settings.start)))
        found = list[GoldText]()
        with mixed(self.settings.precision, self.device):
            for start in range(0, len(corpus.negatives), READ_AT_ONCE):
                part = corpus.negatives[start : start + READ_AT_ONCE]
                tagged = model.predict([t.text for t in part])
                found += [t for t, own in zip(part, tagged, strict=True) if pairs(own)]
        console.print(
            f"a drug and an effect found in {len(found)} of {len(corpus.negatives)} training sentences "
            "without an event",
            highlight=False,
        )
        return model, found

    def with_sentence_head(
        self, model: RelationModel, corpus: Corpus, found: Sequence[GoldText]
    ) -> RelationModel:
        """The model with a sentence head, which is trained and written. `found`: training sentences without
        an event in which the model finds pairs.
        """
        encoder, settings = model.spaces.encoder, self.settings
        assert isinstance(encoder, SplitEncoder)
        texts = texts_of(corpus, found, settings), corpus.valid + corpus.valid_negatives
        space = SentenceSpace(settings, encoder, texts, self.folder, self.device)
        self._fit(space, "sentence")
        model.sentence_head = space.save(self.folder, settings.frozen_layers(encoder.model))
        return model

    def _started(self, objective: Objective) -> tuple[Tensor, TokenHead | None]:
        """The projection and the token head of the release to start with, after its adapters were copied."""
        release = open_release(Path(self.settings.start))
        manifest, names = release.manifest, {ADAPTER, UPPER_ADAPTER}
        if (
            objective != "all"
            or manifest.base != self.settings.base
            or not manifest.files.keys() >= names
            or manifest.configuration["training"]["split"] != self.settings.split
        ):
            raise ReleaseError(
                f"{release.version}: --start needs --objective all and a release of it over "
                f"{self.settings.base} and {self.settings.split}"
            )
        if self.settings.keep_support:
            names = manifest.files.keys() - {REFERENCE, SENTENCE_ADAPTER, SENTENCE_HEAD}
        elif SENTENCE_HEAD in manifest.files and SENTENCE_ADAPTER not in manifest.files:
            names.add(SENTENCE_HEAD)
        for name in names:
            shutil.copyfile(release.file(name), self.folder / name)
        tensors = read_tensors(release.file("support.safetensors"))
        head = [tensors[name].float().numpy() for name in HEAD if name in tensors]
        return tensors["projection"].float(), TokenHead(*head) if head else None

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
            write_event_head(space.event, self.folder)
        head = head_of(space.head) if self.settings.cross_entropy else None
        return space.dense.weight.detach().T.contiguous().cpu(), head

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

    def _fit(self, space: EntitySpace | UpperSpace | SentenceSpace, name: str) -> None:
        identity = asdict(self.settings) | self._beside
        loop = TrainingLoop(space, identity, self._run / name if self._run else None, name)
        loop.run()
        self.seconds += loop.seconds


def make(
    objective: Objective,
    settings: Settings,
    sizes: SupportSizes,
    data: Path | None,
    root: Path,
    run: Path | None = None,
    device: torch.device | str = "cpu",
) -> Release:
    """Trains, scores on the test part of the split, and publishes under `root`."""
    corpus = corpus_of(asdict(settings), data)
    with tempfile.TemporaryDirectory(prefix="relation-") as name:
        trainer = Trainer(settings, Path(name), run, device)
        if settings.keep_support:
            model, found = trainer.started(objective, corpus)
        else:
            encoders, entities, _ = trainer.train(objective, sizes, corpus)
            model = assemble(encoders, corpus, entities, settings, sizes, trainer.folder)
            found = [e.gold for e in entities.negatives]
        if settings.sentence_epochs and (trainer.folder / UPPER_ADAPTER).exists():
            model = trainer.with_sentence_head(model, corpus, found)
        elif (trainer.folder / SENTENCE_HEAD).exists():
            model.sentence_head = read_event_head(trainer.folder, model.spaces.encoder.dimension)
        if model.sentence_head is not None:
            choose_event_threshold(model, corpus.valid, corpus.valid_negatives)
        return _published(trainer, objective, sizes, model, corpus, data, root)


def _published(
    trainer: Trainer,
    objective: Objective,
    sizes: SupportSizes,
    model: RelationModel,
    corpus: Corpus,
    data: Path | None,
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
        "words_share": model.voting.words_share,
        "threshold": model.voting.threshold,
        **({} if model.voting.event_threshold is None else {"event_threshold": model.voting.event_threshold}),
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
        training_data=_sources(settings, corpus),
        canary=CANARY,
        scores=lambda m: release_scores(m, asdict(settings), data),
        root=root,
        device=trainer.device,
        reference=TextsOf.some(READ, [text.text for text in corpus.train + corpus.negatives]),
    )


def _sources(settings: Settings, corpus: Corpus) -> list[TrainingData]:
    """What a release was trained on."""
    of_head = taught_texts(settings) if settings.sentence_epochs else []
    unseen = {t.id for t in corpus.valid + corpus.valid_negatives}
    texts = [*corpus.train, *corpus.negatives, *of_head]
    taught = {t.id: t for t in texts if t.id not in unseen}.values()
    public = [ade_corpus(settings.split), ADE_NEGATIVES] if settings.corpora == "ade" else []
    own = [*public, *teaching_sources(taught)]
    first = open_release(Path(settings.start)).manifest.training_data if settings.start else []
    if settings.pretrained:
        first = pretrained_sources(settings)
    return own + [source for source in first if source not in own]


def pretrained_sources(settings: Settings) -> list[TrainingData]:
    """What the weights of `--pretrained` learned; raises typer.BadParameter as `read_sources`, and for a
    folder that is no release with CLNER's encoder for this base and split.
    """
    first = Path(settings.pretrained)
    if not first.is_dir():
        return read_sources(first, settings.base, settings.split)
    manifest = open_release(first).manifest
    split = manifest.configuration.get("training", {}).get("split")
    fits = (manifest.task, manifest.base, split) == ("relation", settings.base, settings.split)
    if not fits or ADAPTER not in manifest.files:
        raise typer.BadParameter(
            f"{first} is no relation release over {settings.base} and {settings.split} with CLNER's encoder"
        )
    return manifest.training_data
