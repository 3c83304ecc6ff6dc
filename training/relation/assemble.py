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
from safetensors.torch import save_file
from torch import Tensor

from models import drugs
from models.encoder.faiss_index import unit
from models.encoder.layer_split import Lower, Read, Upper
from models.encoder.model import ADAPTER, Encoder, Words, surface_words
from models.relation.model import RelationModel, Voting
from models.relation.neighbours import Floats, Vote, decode_tags, votes
from models.relation.spaces import UPPER_ADAPTER, EmbeddingSpaces
from training.common import adapter
from training.common.corpora import GoldText
from training.common.precision import mixed
from training.evaluation.relation import PROPORTION
from training.relation.data import TAGS, Corpus, Example, Found, examples, known_drugs, paired
from training.relation.knn_scores import Queries, mentions_of, nearest
from training.relation.settings import Settings
from training.relation.support_set import (
    Pairs,
    Part,
    Sizes,
    WordRows,
    choose_pairs,
    pair_projection,
    pair_rows,
    support_of,
    tensors_of,
    word_support,
)

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
        paths = {
            name: folder / name if (folder / name).exists() else None for name in (ADAPTER, UPPER_ADAPTER)
        }
        encoder = Encoder.load(settings.base, adapter=paths[ADAPTER])
        matrix = torch.eye(encoder.dimension) if dense is None else dense
        found = cls(encoder, np.ascontiguousarray(matrix.numpy(), dtype=np.float32))
        found.precision = settings.precision
        if paths[UPPER_ADAPTER]:
            below = settings.lower(encoder.model)
            found.encoder = Lower(encoder, below)
            found.upper = Upper(Encoder.load(settings.base, adapter=paths[UPPER_ADAPTER]), below)
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
    save_file(adapter.factored(base, upper.model, settings.pair_rank), folder / UPPER_ADAPTER)


@dataclass(frozen=True, slots=True)
class Entities:
    """The support of the entities, and the pairs that it finds."""

    words: WordRows
    alarms: list[Example]
    """training sentences without an event in which it finds some"""
    valid: Found


def find_entities(encoders: Encoders, corpus: Corpus, settings: Settings, sizes: Sizes) -> Entities:
    """From the space of entities as a release will hold it."""
    rng = random.Random(settings.seed)
    lexicons = known_drugs(corpus.train) if settings.ignore_drugs else []
    plain = rng.sample(corpus.negatives, min(PLAIN, len(corpus.negatives)))
    data = Queries(examples(corpus.valid, encoders.encoder), examples(corpus.alarms, encoders.encoder))
    learnt = examples(corpus.train, encoders.encoder) + examples(plain, encoders.encoder, lexicons)
    support, asked = encoders.read(learnt), encoders.read(data.examples)
    words = word_support(support, asked, data, encoders.dense, sizes, settings.vote, settings.seed)
    vote = settings.vote
    alarms = find_pairs(encoders, words, corpus.negatives, vote)
    found = [find_pairs(encoders, words, texts, vote) for texts in (corpus.valid, corpus.alarms)]
    weight = PROPORTION * len(corpus.valid) / max(1, len(corpus.alarms))
    valid = Found(found[0] + found[1], sum(len(t.relations) for t in corpus.valid), weight)
    console.print(
        f"a drug and an effect in {len(alarms)} of {len(corpus.negatives)} training sentences without an "
        f"event, {len(found[1])} of {len(corpus.alarms)} for validation",
        highlight=False,
        soft_wrap=True,
    )
    return Entities(words, alarms, valid)


def find_pairs(
    encoders: Encoders, words: WordRows, texts: Sequence[GoldText], vote: Vote, size: int = 1024
) -> list[Example]:
    """The sentences in which neighbours find a drug and an effect, with these pairs."""
    found = []
    for start in range(0, len(texts), size):
        data = examples(texts[start : start + size], encoders.encoder)
        asked = torch.from_numpy(unit(encoders.read(data).words() @ words.projection))
        cosines, rows = nearest(asked, torch.from_numpy(words.vectors), words.k)
        shares = votes(cosines.numpy(), words.tags[rows.numpy()], len(TAGS), vote)
        tags = decode_tags(shares, [len(e.tags) for e in data], words.transitions)
        found += [paired(e, m) for e, m in zip(data, mentions_of(tags, data), strict=True)]
    return [e for e in found if len(e.pairs) or len(e.unrelated)]


def assemble(
    encoders: Encoders, corpus: Corpus, entities: Entities, settings: Settings, sizes: Sizes, folder: Path
) -> RelationModel:
    """Writes support and table of pairs into the folder and gives the model that they make; prints what each
    step costs.
    """
    train = encoders.read(examples(corpus.train, encoders.encoder) + entities.alarms)
    valid = encoders.read(entities.valid.examples)
    hidden, asked = encoders.above(train), encoders.above(valid)

    def rows(part: Part, vectors: Sequence[Floats]) -> Pairs:
        return pair_rows(part.examples, vectors)

    choose_pairs("as trained", rows(train, hidden), rows(valid, asked), entities.valid)
    directions = pair_projection(train.examples, hidden, sizes.pair_dimension)
    pairs, queries = (
        rows(part, [unit(h @ directions) for h in own]) for part, own in ((train, hidden), (valid, asked))
    )
    k_pairs = choose_pairs("projected", pairs, queries, entities.valid)
    words = entities.words
    spaces = EmbeddingSpaces(
        encoders.encoder, words.projection, upper=encoders.upper, pair_projection=directions
    )
    found = RelationModel(spaces, support_of(words, pairs), Voting(words.k, k_pairs, settings.vote))
    _write(found, pairs, folder)
    return found


def _write(model: RelationModel, pairs: Pairs, folder: Path) -> None:
    tensors = tensors_of(model.support, model.spaces.projection, model.spaces.pair_projection)
    save_file(tensors, folder / "support.safetensors")
    table = [f"{s}\t{d}\t{e}\t{int(r)}\n" for (s, d, e), r in zip(pairs.rows, pairs.related, strict=True)]
    (folder / "pairs.tsv").write_text("sentence\tdrug\teffect\trelated\n" + "".join(table), encoding="utf-8")
    shutil.copyfile(drugs.BUNDLED, folder / "drugs.tsv")
