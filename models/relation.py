"""Drugs, effects and which drug caused which effect, by nearest neighbours among training words and training
pairs.

CLDR/CLNER inference: a word's tag by majority of its nearest training words, a pair [drug ; effect] of the
last words of two mentions related when the majority of its nearest training pairs is. Both searches run in
FAISS.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from models.drugs import DrugLexicon
from models.encoder import Encoder, encoder_of
from models.index import CosineIndex, unit
from models.ner import spans_of, tags_of
from models.release import Release, ReleaseError
from models.tables import read_tsv
from models.tensors import read_tensors
from models.text import sentences, words
from models.types import ADE, DRUG, Mention, Neighbour, Relation, Span, TaggedText

LABELS = (DRUG, ADE)
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Support:
    """Training examples in the projected space: words with their tag numbers, pairs with their verdict and
    sentence id.
    """

    words: Floats
    """(words, dimension)"""
    tags: NDArray[np.int64]
    pairs: Floats
    """(pairs, 2 * dimension): [drug ; effect]"""
    related: NDArray[np.bool_]
    pair_ids: list[str]


class _Sentence(NamedTuple):
    report: int
    words: list[Span]


class _Tagged(NamedTuple):
    """A mention and the vector of its last word."""

    mention: Mention
    vector: Floats


class RelationModel:
    """Encoder, projection and support belong together and come out of one release."""

    task = "relation"

    def __init__(  # noqa: PLR0913, PLR0917  the parts that a release is made of
        self,
        encoder: Encoder,
        projection: Floats,
        support: Support,
        k_words: int,
        k_pairs: int,
        lexicon: DrugLexicon | None = None,
        device: str = "cpu",
    ) -> None:
        """`projection`: (encoder dimension, projected dimension)."""
        self.encoder = encoder
        self.projection = projection
        self.support = support
        self.tags = tags_of(LABELS)
        self.k_words = k_words
        self.k_pairs = k_pairs
        self.lexicon = lexicon
        self._words = CosineIndex(support.words, device)
        self._pairs = CosineIndex(support.pairs, device)

    @classmethod
    def load(
        cls, release: Release, *, device: str = "cpu", dtype: torch.dtype = torch.float32
    ) -> RelationModel:
        """Raises ReleaseError when the tensors do not fit each other or the table of pairs."""
        configuration = release.manifest.configuration
        encoder = encoder_of(release, device=device, dtype=dtype)
        tensors = {k: v.float().numpy() for k, v in read_tensors(release.file("support.safetensors")).items()}
        support = Support(
            words=tensors["words"],
            tags=tensors["tags"].astype(np.int64),
            pairs=tensors["pairs"],
            related=tensors["related"] > 0,
            pair_ids=_pair_ids(release.file("pairs.tsv")),
        )
        n, width = tensors["projection"].shape
        fits = (
            n == encoder.dimension
            and support.words.shape == (len(support.tags), width)
            and support.pairs.shape == (len(support.pair_ids), 2 * width)
            and len(support.related) == len(support.pair_ids)
            and support.tags.max(initial=0) < len(tags_of(LABELS))
        )
        if not fits:
            raise ReleaseError(
                f"{release.version}: the support set does not fit the encoder or the table of pairs"
            )
        return cls(
            encoder,
            tensors["projection"],
            support,
            configuration["k_words"],
            configuration["k_pairs"],
            DrugLexicon.load(release.file("drugs.tsv")),
            device,
        )

    def predict(self, batch: Sequence[str]) -> list[TaggedText]:
        """Mentions and relations of each text; a relation never leaves its sentence."""
        split = [_Sentence(i, words(text, s)) for i, text in enumerate(batch) for s in sentences(text)]
        vectors = self.project([[batch[s.report][w.start : w.end] for w in s.words] for s in split])
        tagged = self._tag(batch, split, vectors)
        candidates = [
            (n, head, tail)
            for n, found in enumerate(tagged)
            for head, d in enumerate(found)
            if d.mention.label == DRUG
            for tail, e in enumerate(found)
            if e.mention.label == ADE
        ]
        verdicts = self.judge(
            [np.concatenate([tagged[n][h].vector, tagged[n][t].vector]) for n, h, t in candidates]
        )
        return self._collect(len(batch), split, tagged, list(zip(candidates, verdicts, strict=True)))

    def project(self, surfaces: Sequence[Sequence[str]]) -> list[Floats]:
        """Unit vectors (words, projected dimension) of each sentence, given as words."""
        with torch.inference_mode():
            hidden = self.encoder.word_vectors(surfaces)
        return [unit(unit(h.numpy()) @ self.projection) for h in hidden]

    def judge(self, pairs: Sequence[Floats]) -> list[tuple[float, tuple[Neighbour, ...]]]:
        """Share of the k nearest training pairs that are related, and those neighbours, nearest first."""
        if not pairs:
            return []
        scores, rows = self._pairs.search(np.stack(pairs), self.k_pairs)
        verdicts = []
        for score, row in zip(scores, rows, strict=True):
            neighbours = tuple(
                Neighbour(self.support.pair_ids[r], round(1 - s, 4))
                for s, r in zip(score.tolist(), row.tolist(), strict=True)
            )
            verdicts.append((float(self.support.related[row].mean()), neighbours))
        return verdicts

    def word_tags(self, vectors: Floats) -> tuple[NDArray[np.int64], Floats]:
        """The commonest tag among each word's k nearest training words, and its share of them."""
        _, rows = self._words.search(vectors, self.k_words)
        votes = np.zeros((len(rows), len(self.tags)), np.int64)
        np.add.at(votes, (np.arange(len(rows))[:, None], self.support.tags[rows]), 1)
        return votes.argmax(1), (votes.max(1) / rows.shape[1]).astype(np.float32)

    def _tag(
        self, batch: Sequence[str], split: Sequence[_Sentence], vectors: Sequence[Floats]
    ) -> list[list[_Tagged]]:
        if not split:
            return []
        tags, shares = self.word_tags(np.concatenate(vectors))
        found, at = [], 0
        for sentence, vector in zip(split, vectors, strict=True):
            own = slice(at, at + len(sentence.words))
            at = own.stop
            names = [self.tags[t] for t in tags[own]]
            found.append(self._mentions(batch[sentence.report], sentence.words, names, shares[own], vector))
        return found

    def _mentions(
        self, text: str, spans: list[Span], names: list[str], shares: Floats, vectors: Floats
    ) -> list[_Tagged]:
        found = []
        for label, first, after in spans_of(names):
            start, end = spans[first].start, spans[after - 1].end
            surface = text[start:end]
            generic = self.lexicon.generic(surface) if self.lexicon and label == DRUG else None
            score = round(float(shares[first:after].mean()), 4)
            found.append(_Tagged(Mention(start, end, surface, label, score, generic), vectors[after - 1]))
        return found

    @staticmethod
    def _collect(
        n_texts: int, split: Sequence[_Sentence], tagged: Sequence[list[_Tagged]], judged: Sequence[Any]
    ) -> list[TaggedText]:
        mentions: list[list[Mention]] = [[] for _ in range(n_texts)]
        relations: list[list[Relation]] = [[] for _ in range(n_texts)]
        before: list[int] = []
        for sentence, found in zip(split, tagged, strict=True):
            before.append(len(mentions[sentence.report]))
            mentions[sentence.report] += [t.mention for t in found]
        for (n, head, tail), (share, neighbours) in judged:
            if share > 0.5:  # noqa: PLR2004  majority
                relation = Relation(before[n] + head, before[n] + tail, round(share, 4), neighbours)
                relations[split[n].report].append(relation)
        return [TaggedText(tuple(m), tuple(r)) for m, r in zip(mentions, relations, strict=True)]


def _pair_ids(path: Path) -> list[str]:
    return [row[0] for row in read_tsv(path, ("sentence", "drug", "effect", "related"))]
