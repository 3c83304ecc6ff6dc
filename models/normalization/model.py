"""Codes mentions to a terminology: the nearest terms by cosine, one candidate per preferred term.

With the parts of Dynamic Context Refining in the release (context_refining.py) the sentence of a mention is
encoded too, without them the mention alone.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from pydantic import TypeAdapter

from models import terminology
from models.encoder.model import Encoder, encoder_of
from models.normalization import patient_phrases
from models.normalization.context_refining import DCR, Refiner, load_refiner
from models.normalization.measurements import NORMAL, in_words, only_reading
from models.normalization.nil_rule import Floats, NilRule, features
from models.normalization.packed_vectors import PackedVectors, Vectors
from models.normalization.patient_phrases import Phrases
from models.normalization.polarity import is_relief, opposes
from models.normalization.serious import lacks_evidence
from models.normalization.spelling import Spelling
from models.normalization.term_index import TermIndex
from models.releases.manifest import Release, ReleaseError
from models.releases.tensors import read_tensors
from models.terminology import Term
from models.types import Coding, Query

#: Nearest lowest-level terms that are searched per candidate: preferred terms have several of them.
TERMS_PER_CANDIDATE = 12
#: Patients' phrases with their preferred terms, and the vectors: of coded mentions, and written phrases.
PHRASES, PHRASE_VECTORS = "phrases.tsv", "phrases.safetensors"
TAUGHT, TAUGHT_VECTORS = "taught.tsv", "taught.safetensors"


class NormalizationModel:
    """Nearest-neighbour search over the vectors of a terminology and of patients' phrases.

    In any batch a mention has the same candidates, and scores equal to 1e-4 (see models/encoder/model.py).
    """

    task = "normalization"

    def __init__(  # noqa: PLR0913  the parts of a release
        self,
        encoder: Encoder,
        terms: Sequence[Term],
        vectors: Vectors,
        *,
        k: int,
        nil_below: float,
        device: str = "cpu",
        refiner: Refiner | None = None,
        phrases: Phrases | None = None,
        taught: Phrases | None = None,
        vote: float = 0.0,
        prior: float = 0.0,
        nil_rule: NilRule | None = None,
        spelling: Spelling | None = None,
    ) -> None:
        """`encoder` is S_isolated and `vectors` (terms, dimension) are unit vectors of the terms by it; `k`
        is the number of candidates. `vote`: the temperature at which the names and phrases of a preferred
        term add up (log-sum-exp of their cosines); 0: the nearest alone decides. `prior`: what
        each level of a preferred term's estimated frequency adds to that. A coding is NIL by `nil_rule`;
        without one, where its best cosine is below `nil_below`. A mention is read with its words corrected
        by `spelling`, if there is one.
        """
        self.encoder = encoder
        self.terms = list(terms)
        self.phrases = phrases if phrases and phrases.texts else None
        self.taught = taught if taught and taught.texts else None
        self.k = k
        self.nil_below = nil_below
        self.nil_rule = nil_rule
        self.refiner = refiner
        self.vote = vote
        self.prior = prior
        self.spelling = spelling
        sets = [p for p in (self.phrases, self.taught) if p is not None]
        self._device, self._vectors = device, vectors
        self._index = TermIndex(self.terms, vectors, sets, device)

    @classmethod
    def load(
        cls, release: Release, *, device: str = "cpu", dtype: torch.dtype = torch.float32
    ) -> NormalizationModel:
        """Raises ReleaseError when base, terminology, vectors or phrases do not fit together."""
        configuration = release.manifest.configuration
        refiner = load_refiner(release, device, dtype) if DCR in release.manifest.files else None
        encoder = refiner.isolated if refiner else encoder_of(release, device=device, dtype=dtype)
        terms = terminology.load(release.file("terminology.tsv"))
        vectors = PackedVectors.from_tensors(read_tensors(release.file("vectors.safetensors")))
        if vectors.shape != (len(terms), encoder.dimension):
            raise ReleaseError(f"{release.version}: {tuple(vectors.shape)} vectors for {len(terms)} terms")
        taught = _load_phrases(release, terms, encoder.dimension, TAUGHT, TAUGHT_VECTORS)
        return cls(
            encoder,
            terms,
            vectors,
            k=configuration["k"],
            nil_below=configuration["nil_below"],
            device=device,
            refiner=refiner,
            phrases=_load_phrases(release, terms, encoder.dimension, PHRASES, PHRASE_VECTORS),
            taught=taught,
            vote=configuration.get("vote", 0.0),
            prior=configuration.get("prior", 0.0),
            nil_rule=NilRule.of(configuration["nil_rule"]) if "nil_rule" in configuration else None,
            spelling=spelling_of(encoder, terms, taught) if configuration.get("spelling") else None,
        )

    def phrases_of(self, terms: Sequence[Term]) -> dict[str, Any]:
        """What a model over other terms gets of the phrases, those whose preferred term is one of them, and
        how they are ranked.
        """
        sets = {"phrases": self.phrases, "taught": self.taught}
        ranking = {"vote": self.vote, "prior": self.prior}
        return {name: p.within(terms) if p else None for name, p in sets.items()} | ranking

    def without(self, pts: Set[str]) -> NormalizationModel:
        """The same model over a terminology that lacks these preferred terms, their lowest-level terms and
        their phrases.
        """
        kept = [i for i, t in enumerate(self.terms) if t.pt not in pts]
        terms = [self.terms[i] for i in kept]
        return NormalizationModel(
            self.encoder,
            terms,
            self._vectors[torch.tensor(kept, dtype=torch.long)],
            k=self.k,
            nil_below=self.nil_below,
            device=self._device,
            refiner=self.refiner,
            nil_rule=self.nil_rule,
            spelling=self.spelling,
            **self.phrases_of(terms),
        )

    def mention_only(self) -> NormalizationModel:
        """The same S_isolated and terms without context and without phrases, a baseline."""
        model = copy.copy(self)
        model.refiner = None
        model._index = self._index.of_terms()
        return model

    @staticmethod
    def canary_inputs(stored: list[Any]) -> list[Query]:
        """Queries from a manifest's JSON values."""
        return TypeAdapter(list[Query]).validate_python(stored)

    @staticmethod
    def canary_outputs(stored: list[Any]) -> list[Coding]:
        """Codings from a manifest's JSON values, whose missing fields get their defaults."""
        return TypeAdapter(list[Coding]).validate_python(stored)

    @staticmethod
    def comparable(answers: Sequence[dict[str, Any]]) -> list[Any]:
        """The part of canary answers that must be the same in another number format: the best candidate, NIL
        and its confidence. Of many names the next ones are almost equally near, and change places with the
        rounding.
        """
        return [
            {name: answer[name] for name in ("nil", "confidence", "context_weight")}
            | {"best": answer["candidates"][:1]}
            for answer in answers
        ]

    def predict(self, batch: Sequence[Query]) -> list[Coding]:
        """The k best preferred terms of each mention, that of a name with the very words first, else one that
        is not of opposite polarity; NIL by the rule, where all have the opposite polarity, where the mention
        is the relief of a symptom and no name, and where a serious term has no evidence but a low cosine. A
        mention that is nothing but a reading is coded by its words, and is NIL within normal limits; where
        another with numbers is NIL, it is coded with these in words, if that is not NIL.
        """
        if not batch:
            return []
        asked = self._spelled(batch)
        # Without a sentence equal words have equal codings: they are coded once.
        keys: Sequence[Any] = asked if self.refiner else [q.surface for q in asked]
        distinct = dict(zip(keys, asked, strict=True))
        levels = {key: only_reading(query.surface) for key, query in distinct.items()}
        first = {key: _in_words(q) if levels[key] else q for key, q in distinct.items()}
        codings = self._codings(first)
        read = {key: _in_words(query) for key, query in first.items() if codings[key].nil}
        if again := {key: query for key, query in read.items() if query != first[key]}:
            codings |= {key: coding for key, coding in self._codings(again).items() if not coding.nil}
        codings |= {key: replace(codings[key], nil=True) for key in levels if levels[key] == NORMAL}
        return [codings[key] for key in keys]

    def _codings(self, queries: Mapping[Any, Query]) -> dict[Any, Coding]:
        vectors, weights = self._embedded(list(queries.values()))
        found = self._index.search(vectors, self.k * TERMS_PER_CANDIDATE)
        return {
            key: self._coding(query.surface, cosines, rows, weight)
            for (key, query), (cosines, rows), weight in zip(queries.items(), found, weights, strict=True)
        }

    def nil_inputs(self, batch: Sequence[Query], vectors: np.ndarray[Any, Any]) -> list[tuple[Floats, str]]:
        """The features of the rule for NIL of each mention, and its best preferred term; for the calibration
        of a rule. `vectors`: those of `embed`.
        """
        found = self._index.search(vectors, self.k * TERMS_PER_CANDIDATE)
        out = []
        for query, (cosines, rows) in zip(self._spelled(batch), found, strict=True):
            (first, *_), _ = self._ranked(query.surface, cosines, rows)
            pt = self._index.pt(int(rows[first]))
            out.append((self._features(query.surface, cosines, rows, first), pt))
        return out

    def embed(self, batch: Sequence[Query]) -> tuple[np.ndarray[Any, Any], list[float | None]]:
        """(mentions, dimension) vectors, not of unit length, and the weight of each one's sentence."""
        return self._embedded(self._spelled(batch))

    def _spelled(self, batch: Sequence[Query]) -> Sequence[Query]:
        """The queries with the misspelled words of their mentions corrected."""
        if self.spelling is None:
            return batch
        return [replace(q, surface=self.spelling.corrected(q.surface)) for q in batch]

    def _embedded(self, batch: Sequence[Query]) -> tuple[np.ndarray[Any, Any], list[float | None]]:
        if self.refiner is None:
            return self.encoder.embed([q.surface for q in batch]).numpy(), [None] * len(batch)
        vectors, weights = self.refiner.embed(batch)
        return vectors.numpy(), weights

    def _coding(
        self, surface: str, scores: np.ndarray[Any, Any], rows: np.ndarray[Any, Any], weight: float | None
    ) -> Coding:
        """Of the rows that count; there may be none."""
        ranked, fits = self._ranked(surface, scores, rows)
        candidates = tuple(self._index.candidate(int(rows[i]), float(scores[i])) for i in ranked)
        confidence = None
        if self.nil_rule is not None and candidates:
            confidence = self.nil_rule.confidence(self._features(surface, scores, rows, ranked[0]))
            nil = confidence < self.nil_rule.below
        else:
            nil = not candidates or candidates[0].score < self.nil_below
        serious = bool(candidates) and self._index.is_serious(candidates[0].pt)
        nil = nil or not fits or (serious and lacks_evidence(surface, candidates[0]))
        return Coding(candidates, nil, None if weight is None else round(weight, 4), confidence, serious)

    def _ranked(
        self, surface: str, cosines: np.ndarray[Any, Any], rows: np.ndarray[Any, Any]
    ) -> tuple[list[int], bool]:
        """The position of the nearest row of each candidate, best first, but the one that the mention names
        is moved to the front, else the first one that is not of the opposite polarity; and whether there is
        one: False where the mention is the relief of a symptom.
        """
        ranked = self._index.ranked(cosines, rows, self.vote, self.prior)
        if (named := self._index.named(surface, rows)) is not None:
            ranked.sort(key=lambda i: self._index.concepts[rows[i]] != named)
            return ranked[: self.k], True
        ranked = ranked[: self.k]
        if is_relief(surface):
            return ranked, False
        for place, position in enumerate(ranked):
            if not opposes(surface, self._index.pt(int(rows[position]))):
                ranked.insert(0, ranked.pop(place))
                return ranked, True
        return ranked, False

    def _features(
        self, surface: str, scores: np.ndarray[Any, Any], rows: np.ndarray[Any, Any], first: int
    ) -> Floats:
        """`first`: the position of the nearest row of the preferred term that is judged."""
        same = self._index.concepts[rows] == self._index.concepts[rows[first]]
        names = [self._index.name(int(row)) for row in rows[same]]
        return features(surface, names, scores.astype(np.float64), same)


def _in_words(query: Query) -> Query:
    """The query with its readings in words ("platelets 20k", "platelets low"); the same where it has none."""
    plain = query.surface.lower()
    read = in_words(plain)
    return query if read == plain else replace(query, surface=read)


def spelling_of(encoder: Encoder, terms: Sequence[Term], taught: Phrases | None) -> Spelling:
    """By the words of the terms, of the written phrases, and of the encoder."""

    def is_piece(word: str) -> bool:
        return len(encoder.tokenizer([word], add_special_tokens=False)["input_ids"][0]) == 1

    return Spelling((t.llt for t in terms), taught.texts if taught else (), is_piece)


def _load_phrases(
    release: Release, terms: Sequence[Term], dimension: int, table: str, packed: str
) -> Phrases | None:
    """Raises ReleaseError when phrases, vectors and terminology do not fit together."""
    if table not in release.manifest.files:
        return None
    texts, pts = patient_phrases.read(release.file(table))
    if unknown := set(pts) - {t.pt for t in terms}:
        raise ReleaseError(f"{release.version}: a phrase has the unknown preferred term {min(unknown)!r}")
    vectors = PackedVectors.from_tensors(read_tensors(release.file(packed)))
    if vectors.shape != (len(texts), dimension):
        raise ReleaseError(f"{release.version}: {tuple(vectors.shape)} vectors for {len(texts)} phrases")
    configuration = release.manifest.configuration
    if table == TAUGHT:
        return Phrases(texts, pts, vectors, -2.0, configuration["taught_penalty"])
    return Phrases(texts, pts, vectors, configuration["phrases_at_least"])
