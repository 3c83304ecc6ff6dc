"""Codes mentions to a terminology: the nearest terms by cosine, one candidate per preferred term.

With the parts of Dynamic Context Refining in the release (context_refining.py) the sentence of a mention is
encoded too, without them the mention alone.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence, Set
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from pydantic import TypeAdapter

from models import terminology
from models.encoder.faiss_index import CosineIndex
from models.encoder.model import Encoder, encoder_of
from models.encoder.weights import ADAPTER, WEIGHTS, check_base
from models.normalization import context_refining, patient_phrases
from models.normalization.context_refining import Refiner
from models.normalization.nil_rule import Floats, NilRule, features
from models.normalization.patient_phrases import Phrases
from models.releases.manifest import Release, ReleaseError
from models.releases.tensors import read_tensors
from models.terminology import Term
from models.types import Candidate, Coding, Query

#: Nearest lowest-level terms that are searched per candidate: preferred terms have several of them.
TERMS_PER_CANDIDATE = 12
#: Matrices and rows of [S] and [E]; the adapter of S_context is in the release's ADAPTER.
DCR = "dcr.safetensors"
#: The adapter of S_isolated, if it was trained.
ISOLATED = "isolated.safetensors"
#: Patients' phrases with their preferred terms, and the phrases' vectors.
PHRASES, PHRASE_VECTORS = "phrases.tsv", "phrases.safetensors"


class NormalizationModel:
    """Nearest-neighbour search over the vectors of a terminology and of patients' phrases.

    In any batch a mention has the same candidates, and scores equal to 1e-4 (see models/encoder/model.py).
    """

    task = "normalization"

    def __init__(  # noqa: PLR0913  the parts of a release
        self,
        encoder: Encoder,
        terms: Sequence[Term],
        vectors: torch.Tensor,
        *,
        k: int,
        nil_below: float,
        device: str = "cpu",
        refiner: Refiner | None = None,
        phrases: Phrases | None = None,
        nil_rule: NilRule | None = None,
    ) -> None:
        """`encoder` is S_isolated and `vectors` (terms, dimension) are unit vectors of the terms by it; `k`
        is the number of candidates. A coding is NIL by `nil_rule`; without one, where its best cosine is
        below `nil_below`.
        """
        self.encoder = encoder
        self.terms = list(terms)
        self.phrases = phrases if phrases and phrases.texts else None
        self.k = k
        self.nil_below = nil_below
        self.nil_rule = nil_rule
        self.refiner = refiner
        # Phrases are coded to the lowest-level term of the same name, which models.terminology.load ensures.
        self._own_term = {t.pt: t for t in reversed(self.terms)} | {
            t.pt: t for t in self.terms if t.llt == t.pt
        }
        rows = vectors if self.phrases is None else torch.cat([vectors, self.phrases.vectors])
        self._device = device
        self._index = CosineIndex(rows.numpy(), device)
        numbers = {pt: i for i, pt in enumerate(dict.fromkeys(t.pt for t in self.terms))}
        pts = [*(t.pt for t in self.terms), *(self.phrases.pts if self.phrases else ())]
        self._concepts = np.array([numbers[pt] for pt in pts])

    @classmethod
    def load(
        cls, release: Release, *, device: str = "cpu", dtype: torch.dtype = torch.float32
    ) -> NormalizationModel:
        """Raises ReleaseError when base, terminology, vectors or phrases do not fit together."""
        configuration = release.manifest.configuration
        refiner = _load_refiner(release, device, dtype) if DCR in release.manifest.files else None
        encoder = refiner.isolated if refiner else encoder_of(release, device=device, dtype=dtype)
        terms = terminology.load(release.file("terminology.tsv"))
        stored = read_tensors(release.file("vectors.safetensors"))
        vectors = unpack(stored)
        if vectors.shape != (len(terms), encoder.dimension):
            raise ReleaseError(f"{release.version}: {tuple(vectors.shape)} vectors for {len(terms)} terms")
        return cls(
            encoder,
            terms,
            vectors,
            k=configuration["k"],
            nil_below=configuration["nil_below"],
            device=device,
            refiner=refiner,
            phrases=_load_phrases(release, terms, encoder.dimension),
            nil_rule=NilRule.of(configuration["nil_rule"]) if "nil_rule" in configuration else None,
        )

    def with_terms(self, terms: Sequence[Term], k: int) -> NormalizationModel:
        """The same encoders with another terminology and without NIL; phrases whose preferred term is not in
        it are left out.
        """
        vectors = self.encoder.embed([t.llt for t in terms])
        phrases = self.phrases.within(terms) if self.phrases else None
        return NormalizationModel(
            self.encoder, terms, vectors, k=k, nil_below=0.0, refiner=self.refiner, phrases=phrases
        )

    def without(self, pts: Set[str]) -> NormalizationModel:
        """The same model over a terminology that lacks these preferred terms, their lowest-level terms and
        their phrases.
        """
        kept = [i for i, t in enumerate(self.terms) if t.pt not in pts]
        terms = [self.terms[i] for i in kept]
        return NormalizationModel(
            self.encoder,
            terms,
            torch.from_numpy(self._index.vectors()[kept]),
            k=self.k,
            nil_below=self.nil_below,
            device=self._device,
            refiner=self.refiner,
            phrases=self.phrases.within(terms) if self.phrases else None,
            nil_rule=self.nil_rule,
        )

    def mention_only(self) -> NormalizationModel:
        """The same S_isolated and terms without context and without phrases, a baseline."""
        model = copy.copy(self)
        model.refiner = None
        if self.phrases is not None:
            # The index is shared; no cosine reaches this threshold.
            model.phrases = replace(self.phrases, min_cosine=2.0)
        return model

    @staticmethod
    def canary_inputs(stored: list[Any]) -> list[Query]:
        """Queries from a manifest's JSON values."""
        return TypeAdapter(list[Query]).validate_python(stored)

    @staticmethod
    def canary_outputs(stored: list[Any]) -> list[Coding]:
        """Codings from a manifest's JSON values, whose missing fields get their defaults."""
        return TypeAdapter(list[Coding]).validate_python(stored)

    def predict(self, batch: Sequence[Query]) -> list[Coding]:
        """The k best preferred terms of each mention; NIL when the best is below the threshold."""
        if not batch:
            return []
        vectors, weights = self.embed(batch)
        scores, rows = self._index.search(vectors, self.k * TERMS_PER_CANDIDATE)
        return [
            self._coding(q.surface, *self._counting(s, r), w)
            for q, s, r, w in zip(batch, scores, rows, weights, strict=True)
        ]

    def judged(self, batch: Sequence[Query], vectors: np.ndarray[Any, Any]) -> list[tuple[Floats, str]]:
        """What the rule for NIL reads of each mention, and its best preferred term; for the calibration of a
        rule. `vectors`: those of `embed`.
        """
        found = zip(batch, *self._index.search(vectors, self.k * TERMS_PER_CANDIDATE), strict=True)
        counting = [(q.surface, *self._counting(scores, rows)) for q, scores, rows in found]
        return [(self._features(*row), self._candidate(int(row[2][0]), 0.0).pt) for row in counting]

    def embed(self, batch: Sequence[Query]) -> tuple[np.ndarray[Any, Any], list[float | None]]:
        """(mentions, dimension) vectors, not of unit length, and the weight of each one's sentence."""
        if self.refiner is None:
            return self.encoder.embed([q.surface for q in batch]).numpy(), [None] * len(batch)
        vectors, weights = self.refiner.embed(batch)
        return vectors.numpy(), weights

    @staticmethod
    def pack(vectors: torch.Tensor) -> dict[str, torch.Tensor]:
        """Unit vectors (terms, dimension) in 8 bits with a scale per row; cosines change by about 0.001."""
        scales = vectors.abs().amax(1).clamp(min=1e-12) / 127
        return {"terms": (vectors / scales.unsqueeze(1)).round().to(torch.int8), "scales": scales}

    def _counting(
        self, scores: np.ndarray[Any, Any], rows: np.ndarray[Any, Any]
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """The scores and rows without phrases whose cosine is below their threshold."""
        if self.phrases is None:
            return scores, rows
        counts = (rows < len(self.terms)) | (scores >= self.phrases.min_cosine)
        return scores[counts], rows[counts]

    def _coding(
        self, surface: str, scores: np.ndarray[Any, Any], rows: np.ndarray[Any, Any], weight: float | None
    ) -> Coding:
        """Of the rows that count; there may be none."""
        best: dict[str, Candidate] = {}
        for score, row in zip(scores.tolist(), rows.tolist(), strict=True):
            candidate = self._candidate(row, score)
            best.setdefault(candidate.pt, candidate)
            if len(best) == self.k:
                break
        candidates = tuple(best.values())
        confidence = None
        if self.nil_rule is not None and candidates:
            confidence = self.nil_rule.confidence(self._features(surface, scores, rows))
            nil = confidence < self.nil_rule.below
        else:
            nil = not candidates or candidates[0].score < self.nil_below
        serious = bool(candidates) and self._own_term[candidates[0].pt].serious
        return Coding(candidates, nil, None if weight is None else round(weight, 4), confidence, serious)

    def _features(self, surface: str, scores: np.ndarray[Any, Any], rows: np.ndarray[Any, Any]) -> Floats:
        best = self._candidate(int(rows[0]), float(scores[0]))
        return features(surface, best.phrase or best.llt, scores.astype(np.float64), self._concepts[rows])

    def _candidate(self, row: int, score: float) -> Candidate:
        if row < len(self.terms):
            term = self.terms[row]
            return Candidate(term.llt, term.pt, term.soc, round(score, 4))
        assert self.phrases is not None
        number = row - len(self.terms)
        term = self._own_term[self.phrases.pts[number]]
        return Candidate(term.llt, term.pt, term.soc, round(score, 4), self.phrases.texts[number])


def unpack(stored: dict[str, torch.Tensor]) -> torch.Tensor:
    """The vectors (rows, dimension) that `NormalizationModel.pack` packed; raises ReleaseError for others,
    whose product could be far larger than both.
    """
    if stored["terms"].ndim != 2 or stored["scales"].shape != stored["terms"].shape[:1]:  # noqa: PLR2004
        raise ReleaseError("the packed vectors are not a matrix with a scale for each row")
    return stored["terms"].float() * stored["scales"].float().unsqueeze(1)


def _load_phrases(release: Release, terms: Sequence[Term], dimension: int) -> Phrases | None:
    """Raises ReleaseError when phrases, vectors and terminology do not fit together."""
    if PHRASES not in release.manifest.files:
        return None
    texts, pts = patient_phrases.read(release.file(PHRASES))
    if unknown := set(pts) - {t.pt for t in terms}:
        raise ReleaseError(f"{release.version}: a phrase has the unknown preferred term {min(unknown)!r}")
    vectors = unpack(read_tensors(release.file(PHRASE_VECTORS)))
    if vectors.shape != (len(texts), dimension):
        raise ReleaseError(f"{release.version}: {tuple(vectors.shape)} vectors for {len(texts)} phrases")
    return Phrases(texts, pts, vectors, release.manifest.configuration["phrases_at_least"])


def _load_refiner(release: Release, device: str, dtype: torch.dtype) -> Refiner:
    """S_context with its trained parts, and S_isolated, which is its base or has an adapter; the two may have
    different bases.
    """
    manifest, settings = release.manifest, release.manifest.configuration
    context_base = settings.get("context_base", manifest.base)
    bases = {context_base: settings.get("context_base_sha256"), manifest.base: manifest.base_sha256}
    for base, digest in bases.items():
        check_base(base, digest, release.version)
    parts = {n: release.file(n) if n in manifest.files else None for n in (ADAPTER, WEIGHTS, ISOLATED)}
    if parts[ADAPTER] is None and parts[WEIGHTS] is None:
        raise ReleaseError(f"{release.version}: {DCR} without a trained S_context")
    common: dict[str, Any] = {"device": device, "dtype": dtype, "max_pieces": settings["max_pieces"]}
    isolated = Encoder.for_inference(manifest.base, adapter=parts[ISOLATED], **common)
    context = Encoder.for_inference(context_base, adapter=parts[ADAPTER], weights=parts[WEIGHTS], **common)
    stored = read_tensors(release.file(DCR))
    return Refiner(
        isolated,
        context_refining.context_encoder(context, stored["tokens"], settings["window"]),
        context_refining.refining_of(stored, isolated.dimension),
    )
