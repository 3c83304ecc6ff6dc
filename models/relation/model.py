"""Which drug caused which effect, by nearest neighbours among training pairs: inference of CLDR.

A drug and an effect of one sentence, represented by the last words of their mentions, are related when most
of the nearest training pairs in the relation space are, of which those count that are similar enough; their
share is the score. The encoder reads only sentences that have a drug and an effect.
"""

from __future__ import annotations

import copy
from bisect import bisect_left
from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from pydantic import TypeAdapter, ValidationError

from models.encoder.faiss_index import CosineIndex, unit
from models.encoder.layers import over
from models.encoder.model import Encoder, encoder_of
from models.relation.pairs import LABELS, SentenceMention, pairs_of
from models.relation.support_set import Floats, NamedPair, SupportSet
from models.relation.voting import Voting, voting_of
from models.releases.manifest import Release, ReleaseError
from models.releases.tensors import read_tensors
from models.rules.sentences import whole_sentences
from models.supplement import Decided
from models.tables import read_tsv
from models.text import words_to_read
from models.types import Case, Mention, Neighbour, Relation, Span

#: The tensors of a release, and the adapter of the upper layers of the relation space.
SUPPORT, UPPER_ADAPTER = "support.safetensors", "above.safetensors"
#: Neighbours of a pair whose sources a record states: of all of them a list of effects would be too long.
QUOTED = 3


class Sentence(NamedTuple):
    """A sentence of a batch of texts."""

    report: int
    """position of its text in the batch"""
    words: list[Span]
    """where each word is in the text"""

    def holds(self, mention: Mention) -> bool:
        """Whether a mention of its text ends in it."""
        return self.words[0].start < mention.end <= self.words[-1].end

    def last_word(self, mention: Mention) -> int:
        """The position of the word in which a mention ends."""
        return bisect_left(self.words, mention.end, key=attrgetter("start")) - 1


class RelationModel:
    """Encoder, projection and support set, which belong together and come from one release."""

    task = "relation"

    def __init__(
        self,
        encoder: Encoder,
        projection: Floats,
        support: SupportSet,
        voting: Voting,
        *,
        device: str = "cpu",
    ) -> None:
        """`projection`: (encoder dimension, dimension of the relation space); `device` is that of the FAISS
        index.
        """
        self.encoder = encoder
        self.projection = projection
        self.support = support
        self.voting = voting
        self.decided: Decided | None = None
        self._index = CosineIndex(support.pairs, device)

    @classmethod
    def load(
        cls, release: Release, *, device: str = "cpu", dtype: torch.dtype = torch.float32
    ) -> RelationModel:
        """Raises ReleaseError when the tensors do not fit each other or the table of pairs."""
        encoder = _encoder_of(release, device, dtype)
        tensors = read_tensors(release.file(SUPPORT))
        projection = tensors["pair_projection"].float().numpy()
        pairs, related = tensors["pairs"].float().numpy(), tensors["related"].numpy() > 0
        support = SupportSet(pairs, related, _named(release.file("pairs.tsv")))
        if projection.shape[:-1] != (encoder.dimension,) or not support.fits(projection.shape[-1]):
            raise ReleaseError(
                f"{release.version}: the support set does not fit the encoder or the table of pairs"
            )
        return cls(encoder, projection, support, voting_of(release), device=device)

    def with_supplement(self, release: Release) -> RelationModel:
        """The same model with the decided pairs of a supplement; raises ReleaseError."""
        model = copy.copy(self)
        model.decided = Decided.load(release, self.support.pairs.shape[1])
        return model

    @staticmethod
    def canary_inputs(stored: list[Any]) -> list[Case]:
        """Cases from a manifest's JSON values; raises ReleaseError for the texts of earlier versions."""
        try:
            return TypeAdapter(list[Case]).validate_python(stored)
        except ValidationError as error:
            raise ReleaseError(f"no case with mentions in the canary: {error.errors()[0]['msg']}") from None

    @staticmethod
    def comparable(answers: Sequence[Sequence[dict[str, Any]]]) -> list[list[list[int]]]:
        """The part of canary answers that must be the same in another number format: drug and effect.

        Scores are left out: votes change in steps of 1/k, and neighbours at nearly equal distance change
        places with the rounding.
        """
        return [[[r["head"], r["tail"]] for r in answer] for answer in answers]

    def predict(self, batch: Sequence[Case]) -> list[list[Relation]]:
        """The relations between the drugs and the effects of each text that share a sentence, see `pairs_of`;
        `head` and `tail` are positions among its mentions.
        """
        texts = [case.text for case in batch]
        found = [(s, own) for s, own in _in_sentences(batch) if {m.mention.label for m in own} == set(LABELS)]
        sentences, tagged = [s for s, _ in found], [own for _, own in found]
        pairs = pairs_of(texts, [s.report for s in sentences], tagged)
        compared = [pair for pair in pairs if not pair.is_stated]
        asked = sorted({pair.sentence for pair in compared})
        vectors = dict(zip(asked, self._word_vectors(texts, [sentences[i] for i in asked]), strict=True))
        voted = iter(
            self.vote_on_pairs([vectors[p.sentence][[p.drug_word, p.effect_word]].ravel() for p in compared])
        )
        relations: list[list[Relation]] = [[] for _ in texts]
        for pair in pairs:
            share, neighbours = (1.0, ()) if pair.is_stated else next(voted)
            if share > self.voting.threshold or pair.is_stated:
                relations[pair.report].append(Relation(pair.head, pair.tail, round(share, 4), neighbours))
        return relations

    def pair_vectors(
        self, texts: Sequence[str], pairs: Sequence[tuple[Mention, Mention]]
    ) -> list[Floats | None]:
        """The vector in the relation space of a pair (drug, effect) of each text, which is read as `predict`
        reads it; None where the two are not in one sentence.
        """
        read = [s for s in sentences_of(texts) if all(map(s.holds, pairs[s.report]))]
        vectors: list[Floats | None] = [None] * len(texts)
        for sentence, words in zip(read, self._word_vectors(texts, read), strict=True):
            vectors[sentence.report] = words[[*map(sentence.last_word, pairs[sentence.report])]].ravel()
        return vectors

    def _word_vectors(self, texts: Sequence[str], sentences: Sequence[Sentence]) -> list[Floats]:
        """Unit vectors of the relation space, (words, dimension) for each sentence."""
        words = [[texts[s.report][w.start : w.end] for w in s.words] for s in sentences]
        with torch.inference_mode():
            hidden = self.encoder.word_vectors(words)
        return [unit(unit(h.numpy()) @ self.projection) for h in hidden]

    def vote_on_pairs(self, pairs: Sequence[Floats]) -> list[tuple[float, tuple[Neighbour, ...]]]:
        """For each pair [drug ; effect] of the relation space the share of its k nearest training pairs that
        are related and at least `Voting.least_cosine` similar, and all k neighbours, nearest first. A decided
        pair that is near enough stands before them and decides alone.
        """
        if not pairs:
            return []
        vectors = np.stack(pairs)
        cosines, rows = self._index.search(vectors, self.voting.k_pairs)
        decided: list[Neighbour | None] = [None] * len(vectors)
        if self.decided is not None:
            decided = self.decided.deciding(vectors, cosines[:, 0])
        results = []
        for own_cosines, own_rows, decision in zip(cosines, rows, decided, strict=True):
            neighbours = tuple(
                self._neighbour(row, cosine, is_quoted=place < QUOTED)
                for place, (cosine, row) in enumerate(
                    zip(own_cosines.tolist(), own_rows.tolist(), strict=True)
                )
            )
            counted = self.support.related[own_rows] & (own_cosines >= self.voting.least_cosine)
            if decision is None:
                results.append((float(counted.mean()), neighbours))
            else:
                results.append((float(bool(decision.related)), (decision, *neighbours)))
        return results

    def _neighbour(self, row: int, cosine: float, *, is_quoted: bool) -> Neighbour:
        pair, related = self.support.named[row], bool(self.support.related[row])
        source = pair.source if is_quoted else ""
        return Neighbour(pair.sentence, round(1 - cosine, 4), pair.drug, pair.effect, related, source)


def sentences_of(texts: Sequence[str]) -> list[Sentence]:
    """The sentences of all texts that have words, in order."""
    read = [(i, words_to_read(t, s)) for i, t in enumerate(texts) for s in whole_sentences(t)]
    return [Sentence(i, words) for i, words in read if words]


def _in_sentences(batch: Sequence[Case]) -> list[tuple[Sentence, list[SentenceMention]]]:
    """The sentences of all texts with the drugs and effects that end in each."""
    found = [(s, list[SentenceMention]()) for s in sentences_of([case.text for case in batch])]
    starts = [(s.report, s.words[0].start) for s, _ in found]
    for report, case in enumerate(batch):
        for position, mention in enumerate(case.mentions):
            begun = bisect_left(starts, (report, mention.end))
            if mention.label not in LABELS or not begun:
                continue
            sentence, own = found[begun - 1]
            if sentence.report == report and sentence.holds(mention):
                own.append(SentenceMention(mention, position, sentence.last_word(mention)))
    return found


def _encoder_of(release: Release, device: str, dtype: torch.dtype) -> Encoder:
    """With the upper layers of the relation space, where a release has them."""
    encoder = encoder_of(release, device=device, dtype=dtype)
    if UPPER_ADAPTER not in release.manifest.files:
        return encoder
    whole = encoder_of(release, device=device, dtype=dtype, adapter=UPPER_ADAPTER)
    return over(encoder, whole, release.manifest.configuration["below"])


def _named(path: Path) -> list[NamedPair]:
    rows = read_tsv(path, ("sentence", "drug", "effect", "related"))
    # Without the last column in releases of earlier versions.
    return [NamedPair(sentence, drug, effect, *rest[:1]) for sentence, drug, effect, _, *rest in rows]
