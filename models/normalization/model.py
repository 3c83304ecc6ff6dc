"""Codes mentions to a terminology: the nearest terms by cosine, one candidate per preferred term.

With the parts of Dynamic Context Refining in the release (context_refining.py) the sentence decides between
the codes of a mention that is no name; whether it is NIL is decided by the mention alone.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from pydantic import TypeAdapter
from torch import Tensor
from torch.nn.functional import normalize

from models import terminology
from models.encoder.model import Encoder, encoder_of
from models.normalization.context_refining import DCR, Refiner, load_refiner
from models.normalization.known_wordings import Known, KnownWordings
from models.normalization.measurements import NORMAL, in_words, only_reading
from models.normalization.nil_rule import Floats, NilRule, features, lacks_evidence
from models.normalization.packed_vectors import PackedVectors, Vectors
from models.normalization.patient_phrases import (
    PHRASE_VECTORS,
    PHRASES,
    TAUGHT,
    TAUGHT_VECTORS,
    Phrases,
    load_phrases,
)
from models.normalization.polarity import is_relief, opposes
from models.normalization.spelling import Spelling
from models.normalization.term_index import Array, Near, TermIndex
from models.releases.manifest import Release, ReleaseError
from models.releases.tensors import read_tensors
from models.supplement import Decided
from models.terminology import Term
from models.types import Coding, Neighbour, Query

#: Nearest lowest-level terms that are searched per candidate: preferred terms have several of them.
TERMS_PER_CANDIDATE = 12


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
        self.wordings = KnownWordings()
        self.decided: Decided | None = None

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
        taught = load_phrases(release, terms, encoder.dimension, TAUGHT, TAUGHT_VECTORS)
        return cls(
            encoder,
            terms,
            vectors,
            k=configuration["k"],
            nil_below=configuration["nil_below"],
            device=device,
            refiner=refiner,
            phrases=load_phrases(release, terms, encoder.dimension, PHRASES, PHRASE_VECTORS),
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

    def with_supplement(self, release: Release) -> NormalizationModel:
        """The same model with the decided wordings of a supplement; raises ReleaseError."""
        model = copy.copy(self)
        model.decided = Decided.load(release, self.encoder.dimension)
        model.wordings = KnownWordings()
        return model

    def mention_only(self) -> NormalizationModel:
        """The same S_isolated and terms without context and without phrases, a baseline."""
        model = copy.copy(self)
        model.refiner = None
        model._index = self._index.of_terms()
        model.wordings = KnownWordings()
        return model

    def forget(self) -> None:
        """Codes each wording anew: before the canary check, whose answers must not be kept ones, and after
        a change of the model.
        """
        self.wordings.clear()

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
        another with numbers is NIL, it is coded with these in words, if that is not NIL. What reviewers
        decided of nearly the same words goes before all of that.
        """
        if not batch:
            return []
        asked = self._spelled(batch)
        known = self.wordings.of(dict.fromkeys(q.surface for q in asked))
        levels = {q.surface: only_reading(q.surface) for q in asked if q.surface not in known}
        words = {surface: _in_words(surface) if level else surface for surface, level in levels.items()}
        pooled = self.encoder.mean_pooled(list(words.values()))
        vectors = {surface: found.vector for surface, found in known.items()}
        vectors |= {s: v if self._is_refined(s) else None for s, v in zip(words, pooled, strict=True)}
        places, refined, weights = self._refined(asked, vectors)
        # One search for both: each reads the whole index.
        near = self._near(torch.cat([pooled, refined]))
        alone = self._alone(words, near[: len(words)])
        alone |= {s: replace(alone[s], nil=True) for s, level in levels.items() if level == NORMAL}
        decided = self._decided(list(words), pooled, near)
        alone |= {s: self._as_decided(alone[s], decision) for s, decision in decided.items()}
        vectors |= dict.fromkeys(decided)
        found = {s: Known(alone[s], None if (v := vectors[s]) is None else v.clone()) for s in words}
        self.wordings.add(found, len(batch))
        codings = [(known | found)[q.surface].coding for q in asked]
        for i, (cosines, rows), weight in zip(places, near[len(words) :], weights, strict=True):
            coding, _ = self._found(asked[i].surface, cosines, rows)
            # NIL and its confidence stay those of the mention alone.
            if not (codings[i].nil or coding.nil or asked[i].surface in decided):
                confidence = codings[i].confidence
                codings[i] = replace(coding, confidence=confidence, context_weight=round(weight, 4))
        return codings

    def _decided(self, surfaces: Sequence[str], pooled: Tensor, near: Sequence[Near]) -> dict[str, Neighbour]:
        """The decisions on surface forms that reviewers decided, or on nearly the same ones; none with a term
        that the terminology lacks.
        """
        if self.decided is None or not surfaces:
            return {}
        nearest = np.array([max(cosines, default=-1.0) for cosines, _ in near[: len(surfaces)]], np.float32)
        found = self.decided.deciding(normalize(pooled).numpy(), nearest)
        decisions = {s: d for s, d in zip(surfaces, found, strict=True) if d is not None}
        return {s: d for s, d in decisions.items() if not d.effect or self._index.has(d.effect)}

    def _as_decided(self, coding: Coding, decision: Neighbour) -> Coding:
        """The coding with the decided term first, or NIL without one."""
        pt = decision.effect
        if not pt:
            return replace(coding, nil=True, confidence=0.0)
        first = self._index.of_pt(pt, 1 - decision.distance, decision.source)
        candidates = (first, *(c for c in coding.candidates if c.pt != pt))[: self.k]
        return replace(
            coding, candidates=candidates, nil=False, confidence=1.0, serious=self._index.is_serious(pt)
        )

    def _near(self, vectors: Tensor) -> list[Near]:
        return list(self._index.search(normalize(vectors).numpy(), self.k * TERMS_PER_CANDIDATE))

    def _alone(self, words: Mapping[str, str], near: Sequence[Near]) -> dict[str, Coding]:
        """The coding of each surface form by its words."""
        rows = zip(words.items(), near, strict=True)
        codings = {surface: self._coding(read, *found) for (surface, read), found in rows}
        read = {surface: _in_words(w) for surface, w in words.items() if codings[surface].nil}
        if again := {surface: w for surface, w in read.items() if w != words[surface]}:
            found = self._near(self.encoder.mean_pooled(list(again.values())))
            others = {s: self._coding(w, *n) for (s, w), n in zip(again.items(), found, strict=True)}
            codings |= {surface: coding for surface, coding in others.items() if not coding.nil}
        return codings

    def _refined(
        self, asked: Sequence[Query], vectors: Mapping[str, Tensor | None]
    ) -> tuple[list[int], Tensor, list[float]]:
        """The places of the mentions whose sentence is read, their vectors and the weights of the sentences.
        `vectors`: of each surface form alone; None where the sentence is not asked.
        """
        alone = {i: v for i, q in enumerate(asked) if (v := vectors[q.surface]) is not None}
        if self.refiner is None or not alone:
            return [], torch.zeros((0, self.encoder.dimension)), []
        places = list(alone)
        read, refined, weights = self.refiner.embed([asked[i] for i in places], list(alone.values()))
        return [places[i] for i in read], refined, weights

    def _is_refined(self, surface: str) -> bool:
        """Whether the sentence is asked: names of the terminology and readings say enough."""
        is_asked = self.refiner is not None and self.refiner.reads(surface)
        return is_asked and not self._index.is_name(surface) and _in_words(surface) == surface

    def nil_inputs(self, batch: Sequence[Query], vectors: Array) -> list[tuple[Floats, str]]:
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

    def embed(self, batch: Sequence[Query]) -> Array:
        """(mentions, dimension) unit vectors of the mentions alone, by which NIL is decided."""
        return self.encoder.embed([q.surface for q in self._spelled(batch)]).numpy()

    def _spelled(self, batch: Sequence[Query]) -> Sequence[Query]:
        """The queries with the misspelled words of their mentions corrected."""
        if self.spelling is None:
            return batch
        return [replace(q, surface=self.spelling.corrected(q.surface)) for q in batch]

    def _coding(self, surface: str, scores: Array, rows: Array) -> Coding:
        """Of the rows that count; there may be none."""
        coding, ranked = self._found(surface, scores, rows)
        if self.nil_rule is None or not coding.candidates:
            nil = not coding.candidates or coding.candidates[0].score < self.nil_below
            return replace(coding, nil=coding.nil or nil)
        confidence = self.nil_rule.confidence(self._features(surface, scores, rows, ranked[0]))
        return replace(coding, nil=coding.nil or confidence < self.nil_rule.below, confidence=confidence)

    def _found(self, surface: str, scores: Array, rows: Array) -> tuple[Coding, list[int]]:
        """The coding, NIL only where no candidate fits or a serious term has no evidence, and the positions
        of its candidates' rows.
        """
        ranked, fits = self._ranked(surface, scores, rows)
        candidates = tuple(self._index.candidate(int(rows[i]), float(scores[i])) for i in ranked)
        serious = bool(candidates) and self._index.is_serious(candidates[0].pt)
        nil = not fits or (serious and lacks_evidence(surface, candidates[0]))
        return Coding(candidates, nil, serious=serious), ranked

    def _ranked(self, surface: str, cosines: Array, rows: Array) -> tuple[list[int], bool]:
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

    def _features(self, surface: str, scores: Array, rows: Array, first: int) -> Floats:
        """`first`: the position of the nearest row of the preferred term that is judged."""
        same = self._index.concepts[rows] == self._index.concepts[rows[first]]
        names = [self._index.name(int(row)) for row in rows[same]]
        return features(surface, names, scores.astype(np.float64), same)


def _in_words(surface: str) -> str:
    """The surface form with its readings in words ("platelets 20k", "platelets low"); the same where it has
    none.
    """
    plain = surface.lower()
    read = in_words(plain)
    return surface if read == plain else read


def spelling_of(encoder: Encoder, terms: Sequence[Term], taught: Phrases | None) -> Spelling:
    """By the words of the terms, of the written phrases, and of the encoder."""

    def is_piece(word: str) -> bool:
        return len(encoder.tokenizer([word], add_special_tokens=False)["input_ids"][0]) == 1

    return Spelling((t.llt for t in terms), taught.texts if taught else (), is_piece)
