"""From trained spaces to the parts of a release: encoders as they will be loaded, supports, neighbours'
numbers.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from safetensors.torch import save_file
from torch import Tensor

from models import drugs
from models.encoder import ADAPTER, Encoder, Words, surface_words
from models.halves import Lower, Read, Upper
from models.index import unit
from models.knn import Floats
from models.relation import ABOVE, RelationModel
from training import adapter
from training.precision import mixed
from training.readers import GoldText
from training.relation_data import Corpus, Example, examples, known_drugs
from training.relation_probe import probe
from training.relation_scores import Queries
from training.relation_support import (
    PAPER_PAIRS,
    Pairs,
    Part,
    Sizes,
    add_alarms,
    choose_pairs,
    gold_pairs,
    pair_projection,
    support_of,
    tensors_of,
    word_support,
)
from training.relation_training import Settings

console = Console()
#: Sentences without an event among the words of the support, and in what the projection is fitted on.
PLAIN = 1000


@dataclass(slots=True)
class Encoders:
    """Both halves as a release holds them."""

    encoder: Encoder
    dense: Floats
    """(d, width): CLNER's layer, or the identity where there is none"""
    upper: Upper | None = None
    precision: str = "float32"

    @classmethod
    def load(cls, settings: Settings, folder: Path, dense: Tensor | None) -> Encoders:
        """From the adapters that stand in a folder."""
        paths = {name: folder / name if (folder / name).exists() else None for name in (ADAPTER, ABOVE)}
        encoder = Encoder.load(settings.base, adapter=paths[ADAPTER])
        matrix = torch.eye(encoder.dimension) if dense is None else dense
        found = cls(encoder, np.ascontiguousarray(matrix.numpy(), dtype=np.float32))
        found.precision = settings.precision
        if paths[ABOVE]:
            below = settings.lower(encoder.model)
            found.encoder = Lower(encoder, below)
            found.upper = Upper(Encoder.load(settings.base, adapter=paths[ABOVE]), below)
        return found

    def read(self, data: Sequence[Example]) -> Part:
        with torch.inference_mode(), mixed(self.precision):
            surfaces = [surface_words(e.gold.text) for e in data]
            if isinstance(self.encoder, Lower):
                return Part(list(data), self.encoder.read(surfaces))
            vectors = self.encoder.word_vectors(surfaces)
            return Part(list(data), [Read(Words([], [], []), v, []) for v in vectors])

    def above(self, part: Part) -> list[Floats]:
        """(words, d) unit vectors in the space of relations, of each sentence."""
        with torch.inference_mode(), mixed(self.precision):
            hidden = (
                self.upper.word_vectors_above(part.read) if self.upper else [r.vectors for r in part.read]
            )
        return [unit(h[: len(e.tags)].numpy()) for e, h in zip(part.examples, hidden, strict=True)]


def write_above(settings: Settings, upper: Upper, folder: Path) -> None:
    """The upper layers' difference from the base as an adapter."""
    base = Encoder.load(settings.base).model
    save_file(adapter.factored(base, upper.model, settings.pair_rank), folder / ABOVE)


def assemble(
    encoders: Encoders, corpus: Corpus, settings: Settings, sizes: Sizes, folder: Path
) -> RelationModel:
    """Writes support and table of pairs into the folder and gives the model that they make."""
    rng = random.Random(settings.seed)
    train, others, data, asked = _read(encoders, corpus, settings, rng)
    everything = Part(train.examples + others.examples, train.read + others.read)
    words = word_support(everything, asked, data, encoders.dense, sizes, settings.vote, settings.seed)
    valid = Part(data.valid, asked.read[: len(data.valid)])
    directions, pairs, queries = _pairs(encoders, train, valid, sizes, settings.seed)

    def model(k_pairs: int) -> RelationModel:
        return RelationModel(
            *(encoders.encoder, words.projection, support_of(words, pairs), words.k, k_pairs),
            upper=encoders.upper,
            pair_projection=directions,
            vote=settings.vote,
        )

    first = model(PAPER_PAIRS)
    searched = rng.sample(corpus.negatives, min(sizes.alarms, len(corpus.negatives)))
    with mixed(settings.precision):
        before = false_relations(first, corpus.alarms)
        added = add_alarms(pairs, first, searched)
    found = model(choose_pairs("with false alarms", pairs, queries))
    with mixed(settings.precision):
        after = false_relations(found, corpus.alarms)
    console.print(
        f"{added} pairs found in {len(searched)} sentences without an event became unrelated; false "
        f"relations per 1000 on validation {before:.0f}, after that {after:.0f}"
    )
    _write(found, pairs, folder)
    return found


def _read(
    encoders: Encoders, corpus: Corpus, settings: Settings, rng: random.Random
) -> tuple[Part, Part, Queries, Part]:
    """Training sentences, some without an event, what validates, and that as it was read."""
    tokenizer = encoders.encoder
    lexicons = known_drugs(corpus.train) if settings.ignore_drugs else []
    plain = rng.sample(corpus.negatives, min(PLAIN, len(corpus.negatives)))
    data = Queries(examples(corpus.valid, tokenizer), examples(corpus.alarms, tokenizer))
    return (
        encoders.read(examples(corpus.train, tokenizer)),
        encoders.read(examples(plain, tokenizer, lexicons)),
        data,
        encoders.read(data.examples),
    )


def _pairs(
    encoders: Encoders, train: Part, valid: Part, sizes: Sizes, seed: int
) -> tuple[Floats, Pairs, Pairs]:
    """Projection (d, dimension), the support's pairs and those of validation in it; prints what it costs."""
    hidden, asked = encoders.above(train), encoders.above(valid)
    choose_pairs(
        "as trained", gold_pairs(train, hidden, sizes.hard, seed), gold_pairs(valid, asked, sizes.hard, seed)
    )
    directions = pair_projection(train, hidden, sizes.pair_dimension)
    pairs, queries = (
        gold_pairs(part, [unit(h @ directions) for h in own], sizes.hard, seed)
        for part, own in ((train, hidden), (valid, asked))
    )
    choose_pairs("projected", pairs, queries)
    return directions, pairs, queries


def _write(model: RelationModel, pairs: Pairs, folder: Path) -> None:
    tensors = tensors_of(model.support, model.projection, model.pair_projection)
    save_file(tensors, folder / "support.safetensors")
    table = [f"{s}\t{d}\t{e}\t{int(r)}\n" for (s, d, e), r in zip(pairs.rows, pairs.related, strict=True)]
    (folder / "pairs.tsv").write_text("sentence\tdrug\teffect\trelated\n" + "".join(table), encoding="utf-8")
    shutil.copyfile(drugs.BUNDLED, folder / "drugs.tsv")


def false_relations(model: RelationModel, texts: Sequence[GoldText]) -> float:
    """In 1,000 sentences."""
    found = model.predict([t.text for t in texts])
    return 1000 * sum(len(f.relations) for f in found) / max(1, len(texts))


def probed(
    named: Sequence[tuple[str, Encoders]], train: Sequence[GoldText], test: Sequence[GoldText]
) -> Table:
    """Table 3: a linear layer over the words of each encoder, trained on one part, measured on the other."""
    table = Table("linear probe, every ordered pair of words", "precision", "recall", "F1")
    for name, encoders in named:
        both = []
        for texts in (train, test):
            part = encoders.read([e for e in examples(texts, encoders.encoder) if len(e.tags)])
            both.append((part.examples, torch.from_numpy(np.concatenate(encoders.above(part)))))
        score = probe(both[0], both[1])
        table.add_row(name, *(f"{100 * value:.2f}" for value in score))
    return table
