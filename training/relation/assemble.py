"""The parts of a relation release from trained spaces: encoders as a release loads them, support sets, and
the numbers of neighbours.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from safetensors.torch import save_file
from torch import Tensor

from models import drugs
from models.encoder.faiss_index import unit
from models.encoder.model import Encoder
from models.encoder.split.layer_split import EncodedSentence, SplitEncoder, UpperLayers
from models.encoder.weights import ADAPTER
from models.encoder.word_pieces import WordPieces
from models.relation.model import RelationModel
from models.relation.neighbours import Floats, TokenHead
from models.relation.spaces import UPPER_ADAPTER, EmbeddingSpaces
from models.relation.voting import Voting
from models.text import word_texts
from training.common import adapter
from training.common.corpora import GoldText
from training.common.precision import mixed
from training.evaluation.relation import PROPORTION
from training.relation.data import Corpus, Example, ValidationPairs, examples, known_drugs, paired
from training.relation.heads.token_head import choose_share
from training.relation.knn_scores import Queries, mentions_of
from training.relation.settings import Settings, frozen_layers
from training.relation.support_set import (
    PAIR_DIMENSION,
    Pairs,
    Part,
    WordRows,
    choose_pairs,
    pair_projection,
    pair_rows,
    support_of,
    tensors_of,
    word_support,
)

console = Console()
#: Sentences without an event in the support set and in the data that the projection is fitted on.
SUPPORT_NEGATIVES = 1000


@dataclass(slots=True)
class Encoders:
    """Both halves as a release holds them."""

    encoder: Encoder
    dense: Floats
    """(d, width): CLNER's layer, or the identity where there is none"""
    head: TokenHead | None = None
    """of CLNER's cross-entropy, where it was trained"""
    upper: UpperLayers | None = None
    precision: str = "float32"

    @classmethod
    def load(
        cls,
        settings: Settings,
        folder: Path,
        dense: Tensor | None,
        device: torch.device | str = "cpu",
        head: TokenHead | None = None,
    ) -> Encoders:
        """From the adapters in a folder; `dense` (d, width)."""
        paths = {
            name: folder / name if (folder / name).exists() else None for name in (ADAPTER, UPPER_ADAPTER)
        }
        place = str(device)
        encoder = Encoder.load(settings.base, adapter=paths[ADAPTER], device=place)
        matrix = torch.eye(encoder.dimension) if dense is None else dense
        found = cls(encoder, np.ascontiguousarray(matrix.numpy(), dtype=np.float32), head)
        found.precision = settings.precision
        if paths[UPPER_ADAPTER]:
            below = frozen_layers(encoder.model)
            found.encoder = SplitEncoder(encoder, below)
            upper = Encoder.load(settings.base, adapter=paths[UPPER_ADAPTER], device=place)
            found.upper = UpperLayers(upper, below)
        return found

    def read(self, data: Sequence[Example]) -> Part:
        """Sentences with the vectors of their words in the entity space's encoder."""
        with torch.inference_mode(), mixed(self.precision, self.encoder.model.device):
            sentences = [word_texts(e.gold.text) for e in data]
            if isinstance(self.encoder, SplitEncoder):
                return Part(list(data), self.encoder.encode(sentences))
            vectors = self.encoder.word_vectors(sentences)
            return Part(list(data), [EncodedSentence(WordPieces([], [], []), v, []) for v in vectors])

    def above(self, part: Part) -> list[Floats]:
        """(words, d) unit vectors in the relation space, of each sentence."""
        with torch.inference_mode(), mixed(self.precision, self.encoder.model.device):
            hidden = (
                self.upper.word_vectors_above(part.read) if self.upper else [r.vectors for r in part.read]
            )
        return [unit(h[: len(e.tags)].numpy()) for e, h in zip(part.examples, hidden, strict=True)]


def write_above(settings: Settings, upper: UpperLayers, folder: Path) -> None:
    """Writes the upper layers' difference from the base as an adapter."""
    base = Encoder.load(settings.base).model
    save_file(adapter.quantized(base, upper.model), folder / UPPER_ADAPTER)


@dataclass(frozen=True, slots=True)
class Entities:
    """The support set of the entity space, and the pairs that it finds."""

    words: WordRows
    negatives: list[Example]
    """training sentences without an event in which it finds pairs"""
    valid: ValidationPairs


def find_entities(encoders: Encoders, corpus: Corpus, settings: Settings) -> Entities:
    """The support set of the entity space as a release will hold it, and the pairs found by it; prints
    counts.
    """
    rng = random.Random(settings.seed)
    plain = rng.sample(corpus.negatives, min(SUPPORT_NEGATIVES, len(corpus.negatives)))
    data = Queries(
        examples(corpus.valid, encoders.encoder), examples(corpus.valid_negatives, encoders.encoder)
    )
    trained = examples(corpus.train, encoders.encoder) + examples(
        plain, encoders.encoder, known_drugs(corpus.train)
    )
    support, asked = encoders.read(trained), encoders.read(data.examples)
    words = word_support(support, asked, data, encoders.dense, settings)
    if settings.decode != "paper":
        words = replace(words, head=encoders.head)
        words = replace(words, share=choose_share(words, asked, data))
    negatives = find_pairs(encoders, words, corpus.negatives)
    found = [find_pairs(encoders, words, texts) for texts in (corpus.valid, corpus.valid_negatives)]
    weight = PROPORTION * len(corpus.valid) / max(1, len(corpus.valid_negatives))
    valid = ValidationPairs(found[0] + found[1], sum(len(t.relations) for t in corpus.valid), weight)
    console.print(
        f"a drug and an effect found in {len(negatives)} of {len(corpus.negatives)} training sentences "
        f"without an event, in {len(found[1])} of {len(corpus.valid_negatives)} for validation",
        highlight=False,
        soft_wrap=True,
    )
    return Entities(words, negatives, valid)


def find_pairs(
    encoders: Encoders, words: WordRows, texts: Sequence[GoldText], size: int = 1024
) -> list[Example]:
    """The sentences in which the neighbours find both a drug and an effect, with these pairs."""
    found = []
    for start in range(0, len(texts), size):
        data = examples(texts[start : start + size], encoders.encoder)
        tags = words.tags_of(encoders.read(data))
        found += [paired(e, m) for e, m in zip(data, mentions_of(tags, data), strict=True)]
    return [e for e in found if len(e.pairs) or len(e.unrelated)]


def assemble(
    encoders: Encoders,
    corpus: Corpus,
    entities: Entities,
    folder: Path,
) -> RelationModel:
    """Writes the support sets into the folder and gives the model that they make up; prints the scores after
    each step.
    """
    train = encoders.read(examples(corpus.train, encoders.encoder) + entities.negatives)
    valid = encoders.read(entities.valid.examples)
    hidden, asked = encoders.above(train), encoders.above(valid)

    def rows(part: Part, vectors: Sequence[Floats]) -> Pairs:
        return pair_rows(part.examples, vectors)

    choose_pairs("as trained", rows(train, hidden), rows(valid, asked), entities.valid)
    directions = pair_projection(train.examples, hidden, PAIR_DIMENSION)
    pairs, queries = (
        rows(part, [unit(h @ directions) for h in own]) for part, own in ((train, hidden), (valid, asked))
    )
    k_pairs = choose_pairs("projected", pairs, queries, entities.valid)
    words = entities.words
    spaces = EmbeddingSpaces(
        encoders.encoder, words.projection, upper=encoders.upper, pair_projection=directions
    )
    found = RelationModel(spaces, support_of(words, pairs), Voting(words.k, k_pairs, words.share))
    _write(found, pairs, folder)
    return found


def _write(model: RelationModel, pairs: Pairs, folder: Path) -> None:
    tensors = tensors_of(model.support, model.spaces.projection, model.spaces.pair_projection)
    save_file(tensors, folder / "support.safetensors")
    table = [f"{s}\t{d}\t{e}\t{int(r)}\n" for (s, d, e), r in zip(pairs.rows, pairs.related, strict=True)]
    (folder / "pairs.tsv").write_text("sentence\tdrug\teffect\trelated\n" + "".join(table), encoding="utf-8")
    shutil.copyfile(drugs.BUNDLED, folder / drugs.RELEASE_FILE)
