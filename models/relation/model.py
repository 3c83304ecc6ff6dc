"""Drugs, effects and which drug caused which effect, by nearest neighbours among training words and training
pairs.

CLDR/CLNER inference: the tags of a sentence's words by vote of their nearest training words in the space
of entities (not the paper's: the most probable sequence under these votes, not each word by itself), a pair
[drug ; effect] of the last words of two mentions related when the majority of its nearest training pairs is
in the space of relations. Both searches run in FAISS. The two spaces share the encoder's lower half; the
upper half of the relations runs for sentences that have a drug and an effect, and for no others.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch

from models.drugs import DrugLexicon
from models.encoder.faiss_index import CosineIndex, unit
from models.encoder.layer_split import EncodedSentence, SplitEncoder, UpperLayers
from models.encoder.model import Encoder, WordPieces, encoder_of
from models.ner.decoding import spans_of, tags_of
from models.relation.neighbours import Floats, Numbers, Support, Vote, decoded, votes
from models.releases.manifest import Release, ReleaseError
from models.releases.tensors import read_tensors
from models.tables import read_tsv
from models.text import sentences, words
from models.types import ADE, DRUG, Mention, Neighbour, Relation, Span, TaggedText

__all__ = ["LABELS", "Floats", "RelationModel", "Support"]
LABELS = (DRUG, ADE)
#: The adapter of the space of relations: its upper layers' difference from the base.
ABOVE = "above.safetensors"
_TRANSITIONS = (len(tags_of(LABELS)) + 1, len(tags_of(LABELS)))
#: Pieces are needed by an upper half alone.
_UNREAD = WordPieces([], [], [])


class _Sentence(NamedTuple):
    report: int
    words: list[Span]


class _Tagged(NamedTuple):
    """A mention, its place among its text's mentions, and its last word."""

    mention: Mention
    place: int
    last: int


class _Pair(NamedTuple):
    report: int
    head: int
    tail: int


class RelationModel:
    """Encoder, projections and support belong together and come out of one release."""

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
        *,
        upper: UpperLayers | None = None,
        pair_projection: Floats | None = None,
        vote: Vote = "majority",
    ) -> None:
        """`projection`: (encoder dimension, projected dimension) of words; that of pairs is the same where
        none is given. `encoder` is a `SplitEncoder` where there is an `upper`.
        """
        self.encoder = encoder
        self.upper = upper
        self.projection = projection
        self.pair_projection = projection if pair_projection is None else pair_projection
        self.support = support
        self.tags = tags_of(LABELS)
        self.k_words = k_words
        self.k_pairs = k_pairs
        self.vote = vote
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
        upper = None
        if ABOVE in release.manifest.files:
            below, pieces = configuration["below"], configuration["max_pieces"]
            encoder = SplitEncoder(encoder, below)
            base, above = release.manifest.base, release.file(ABOVE)
            upper = UpperLayers(
                Encoder.load(base, device=device, dtype=dtype, max_pieces=pieces, adapter=above), below
            )
        tensors = {k: v.float().numpy() for k, v in read_tensors(release.file("support.safetensors")).items()}
        support = Support(
            words=tensors["words"],
            tags=tensors["tags"].astype(np.int64),
            pairs=tensors["pairs"],
            related=tensors["related"] > 0,
            pair_ids=_pair_ids(release.file("pairs.tsv")),
            transitions=tensors.get("transitions"),
        )
        projection = tensors["projection"]
        pair_projection = tensors.get("pair_projection", projection)
        if not _fits(encoder.dimension, projection, pair_projection, support):
            raise ReleaseError(
                f"{release.version}: the support set does not fit the encoder or the table of pairs"
            )
        vote = configuration.get("vote", "majority")
        if vote not in ("majority", "similarity"):
            raise ReleaseError(f"{release.version}: no vote {vote!r}")
        return cls(
            encoder,
            projection,
            support,
            configuration["k_words"],
            configuration["k_pairs"],
            DrugLexicon.load(release.file("drugs.tsv")),
            device,
            upper=upper,
            pair_projection=pair_projection,
            vote=vote,
        )

    @staticmethod
    def comparable(answers: Sequence[dict[str, Any]]) -> list[Any]:
        """What of canary answers another number format must give again: mentions, and what is related.

        Votes come in steps of one in k, and neighbours that are equally near change places with the rounding.
        """
        return [
            {
                "mentions": [[m["start"], m["end"], m["label"]] for m in answer["mentions"]],
                "relations": [[r["head"], r["tail"]] for r in answer["relations"]],
            }
            for answer in answers
        ]

    def predict(self, batch: Sequence[str]) -> list[TaggedText]:
        """Mentions and relations of each text; a relation never leaves its sentence."""
        split = _split(batch)
        read = self._read(batch, split)
        tagged = self._tag(batch, split, read)
        mentions: list[list[Mention]] = [[] for _ in batch]
        for sentence, found in zip(split, tagged, strict=True):
            mentions[sentence.report] += [t.mention for t in found]
        relations = self._relations(len(batch), split, read, tagged)
        return [TaggedText(tuple(m), tuple(r)) for m, r in zip(mentions, relations, strict=True)]

    def relate(self, texts: Sequence[str], mentions: Sequence[Sequence[Mention]]) -> list[list[Relation]]:
        """The relations between mentions that are given, by their places in each text's list."""
        split = _split(texts)
        given = [
            [
                _Tagged(mention, place, _last_word(s.words, mention.end))
                for place, mention in enumerate(mentions[s.report])
                if s.words[0].start < mention.end <= s.words[-1].end
            ]
            for s in split
        ]
        return self._relations(len(texts), split, self._read(texts, split), given)

    def project(self, surfaces: Sequence[Sequence[str]]) -> list[Floats]:
        """Unit vectors (words, projected dimension) in the space of entities, of each sentence, given as
        words.
        """
        return [self._projected(r) for r in self.read(surfaces)]

    def project_pairs(self, read: Sequence[EncodedSentence]) -> list[Floats]:
        """Unit vectors (words, projected dimension) in the space of relations, whose pairs are a pair's
        support.
        """
        with torch.inference_mode():
            hidden = self.upper.word_vectors_above(read) if self.upper else [r.vectors for r in read]
        return [unit(unit(h.numpy()) @ self.pair_projection) for h in hidden]

    def read(self, surfaces: Sequence[Sequence[str]]) -> list[EncodedSentence]:
        """Each sentence, given as words, as the encoder reads it."""
        with torch.inference_mode():
            if self.upper is not None:
                return cast(SplitEncoder, self.encoder).encode(surfaces)
            return [EncodedSentence(_UNREAD, vectors, []) for vectors in self.encoder.word_vectors(surfaces)]

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

    def word_tags(self, vectors: Floats, lengths: Sequence[int]) -> tuple[Numbers, Floats]:
        """Each word's tag from the votes of its k nearest training words, and that tag's share of them;
        `lengths`: how many of the words each sentence has.
        """
        cosines, rows = self._words.search(vectors, self.k_words)
        shares = votes(cosines, self.support.tags[rows], len(self.tags), self.vote)
        tags = decoded(shares, lengths, self.support.transitions)
        return tags, shares[np.arange(len(tags)), tags]

    def _read(self, batch: Sequence[str], split: Sequence[_Sentence]) -> list[EncodedSentence]:
        return self.read([[batch[s.report][w.start : w.end] for w in s.words] for s in split])

    def _projected(self, read: EncodedSentence) -> Floats:
        return unit(unit(read.vectors.numpy()) @ self.projection)

    def _tag(
        self, batch: Sequence[str], split: Sequence[_Sentence], read: Sequence[EncodedSentence]
    ) -> list[list[_Tagged]]:
        if not split:
            return []
        vectors = np.concatenate([self._projected(r) for r in read])
        tags, shares = self.word_tags(vectors, [len(s.words) for s in split])
        found, at, before = [], 0, [0] * len(batch)
        for sentence in split:
            own = slice(at, at + len(sentence.words))
            at = own.stop
            names = [self.tags[t] for t in tags[own]]
            mentions = self._mentions(batch[sentence.report], sentence.words, names, shares[own])
            first = before[sentence.report]
            before[sentence.report] += len(mentions)
            found.append([_Tagged(m, first + i, last) for i, (m, last) in enumerate(mentions)])
        return found

    def _mentions(
        self, text: str, spans: list[Span], names: list[str], shares: Floats
    ) -> list[tuple[Mention, int]]:
        """Each mention with its last word."""
        found = []
        for label, first, after in spans_of(names):
            start, end = spans[first].start, spans[after - 1].end
            surface = text[start:end]
            generic = self.lexicon.generic(surface) if self.lexicon and label == DRUG else None
            score = round(float(shares[first:after].mean()), 4)
            found.append((Mention(start, end, surface, label, score, generic), after - 1))
        return found

    def _relations(
        self,
        n_texts: int,
        split: Sequence[_Sentence],
        read: Sequence[EncodedSentence],
        tagged: Sequence[Sequence[_Tagged]],
    ) -> list[list[Relation]]:
        """What the space of relations says of every drug with every effect of a sentence."""
        kept = [i for i, found in enumerate(tagged) if {t.mention.label for t in found} >= set(LABELS)]
        pairs, vectors = [], []
        for i, vector in zip(kept, self.project_pairs([read[i] for i in kept]), strict=True):
            for drug in (t for t in tagged[i] if t.mention.label == DRUG):
                for effect in (t for t in tagged[i] if t.mention.label == ADE):
                    pairs.append(_Pair(split[i].report, drug.place, effect.place))
                    vectors.append(np.concatenate([vector[drug.last], vector[effect.last]]))
        relations: list[list[Relation]] = [[] for _ in range(n_texts)]
        for pair, (share, neighbours) in zip(pairs, self.judge(vectors), strict=True):
            if share > 0.5:  # noqa: PLR2004  majority
                relations[pair.report].append(Relation(pair.head, pair.tail, round(share, 4), neighbours))
        return relations


def _split(batch: Sequence[str]) -> list[_Sentence]:
    return [_Sentence(i, words(text, s)) for i, text in enumerate(batch) for s in sentences(text)]


def _last_word(spans: Sequence[Span], end: int) -> int:
    return max(i for i, s in enumerate(spans) if s.start < end)


def _fits(dimension: int, projection: Floats, pair_projection: Floats, support: Support) -> bool:
    (n, width), (n_pair, pair_width) = projection.shape, pair_projection.shape
    return (
        n == n_pair == dimension
        and support.words.shape == (len(support.tags), width)
        and support.pairs.shape == (len(support.pair_ids), 2 * pair_width)
        and len(support.related) == len(support.pair_ids)
        and bool(support.tags.max(initial=0) < len(tags_of(LABELS)))
        and (support.transitions is None or support.transitions.shape == _TRANSITIONS)
    )


def _pair_ids(path: Path) -> list[str]:
    return [row[0] for row in read_tsv(path, ("sentence", "drug", "effect", "related"))]
