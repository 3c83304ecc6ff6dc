"""Codes a mention to a terminology: nearest lowest-level term by cosine, one candidate for each preferred
term.

A release without the parts of Dynamic Context Refining (context_refining.py) reads the mention alone.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from pydantic import TypeAdapter

from models import terminology
from models.encoder.faiss_index import CosineIndex
from models.encoder.model import Encoder, encoder_of
from models.encoder.weights import ADAPTER, WEIGHTS, base_digest
from models.normalization import context_refining, patient_phrases
from models.normalization.context_refining import Refiner
from models.normalization.patient_phrases import Phrases
from models.releases.manifest import Release, ReleaseError
from models.releases.tensors import read_tensors
from models.terminology import Term
from models.types import Candidate, Coding, Query

#: A preferred term has several lowest-level terms: so many nearest terms are looked at to find k different
#: ones.
TERMS_FOR_EACH_CANDIDATE = 12
#: Matrices and the two token rows; S_context's adapter is the release's usual one.
DCR = "dcr.safetensors"
#: The adapter of S_isolated, where that one was trained too.
ISOLATED = "isolated.safetensors"
#: Patients' words for preferred terms, and their vectors.
PHRASES, PHRASE_VECTORS = "phrases.tsv", "phrases.safetensors"


class NormalizationModel:
    """Encoder, terminology and vectors belong together and come out of one release."""

    task = "normalization"

    def __init__(  # noqa: PLR0913, PLR0917  the parts that a release is made of
        self,
        encoder: Encoder,
        terms: Sequence[Term],
        vectors: torch.Tensor,
        k: int,
        nil_below: float,
        device: str = "cpu",
        refiner: Refiner | None = None,
        phrases: Phrases | None = None,
    ) -> None:
        """`encoder` is S_isolated, `vectors` (terms, dimension) are its; `refiner` adds the context,
        `phrases` patients' words for terms.
        """
        self.encoder = encoder
        self.terms = list(terms)
        self.phrases = phrases if phrases and phrases.texts else None
        self.k = k
        self.nil_below = nil_below
        self.refiner = refiner
        # A preferred term is a lowest-level term of itself: the terminology sees to it.
        self._head = {t.pt: t for t in reversed(self.terms)} | {t.pt: t for t in self.terms if t.llt == t.pt}
        rows = vectors if self.phrases is None else torch.cat([vectors, self.phrases.vectors])
        self._index = CosineIndex(rows.numpy(), device)

    @classmethod
    def load(
        cls, release: Release, *, device: str = "cpu", dtype: torch.dtype = torch.float32
    ) -> NormalizationModel:
        """Raises ReleaseError when base, terminology and vectors do not fit together."""
        configuration = release.manifest.configuration
        refiner = _refiner(release, device, dtype) if DCR in release.manifest.files else None
        encoder = refiner.isolated if refiner else encoder_of(release, device=device, dtype=dtype)
        terms = terminology.load(release.file("terminology.tsv"))
        stored = read_tensors(release.file("vectors.safetensors"))
        vectors = unpack(stored)
        if vectors.shape != (len(terms), encoder.dimension):
            raise ReleaseError(f"{release.version}: {tuple(vectors.shape)} vectors for {len(terms)} terms")
        said = _phrases(release, terms, encoder.dimension)
        k, nil_below = configuration["k"], configuration["nil_below"]
        return cls(encoder, terms, vectors, k, nil_below, device, refiner, said)

    def over(self, terms: Sequence[Term], k: int) -> NormalizationModel:
        """The same encoders over other terms, without a threshold; phrases of unknown preferred terms go."""
        vectors = self.encoder.embed([t.llt for t in terms])
        said = self.phrases.within(terms) if self.phrases else None
        return NormalizationModel(self.encoder, terms, vectors, k, 0.0, refiner=self.refiner, phrases=said)

    def plain(self) -> NormalizationModel:
        """The mention alone against the terms alone, by the same S_isolated."""
        made = copy.copy(self)
        made.refiner = None
        if self.phrases is not None:
            # No cosine reaches it.
            made.phrases = replace(self.phrases, at_least=2.0)
        return made

    @staticmethod
    def canary_inputs(stored: list[Any]) -> list[Query]:
        return TypeAdapter(list[Query]).validate_python(stored)

    @staticmethod
    def canary_outputs(stored: list[Any]) -> list[Coding]:
        return TypeAdapter(list[Coding]).validate_python(stored)

    def predict(self, batch: Sequence[Query]) -> list[Coding]:
        """The k best preferred terms of each mention; NIL when the best is below the release's threshold."""
        if not batch:
            return []
        weights: list[float | None] = [None] * len(batch)
        if self.refiner is None:
            vectors = self.encoder.embed([q.surface for q in batch])
        else:
            vectors, weights = self.refiner.embed(batch)
        scores, rows = self._index.search(vectors.numpy(), self.k * TERMS_FOR_EACH_CANDIDATE)
        return [self._coding(s, r, w) for s, r, w in zip(scores, rows, weights, strict=True)]

    @staticmethod
    def pack(vectors: torch.Tensor) -> dict[str, torch.Tensor]:
        """Unit vectors (terms, dimension) in 8 bits with a scale for each row; the cosine moves by about
        0.001.
        """
        scales = vectors.abs().amax(1).clamp(min=1e-12) / 127
        return {"terms": (vectors / scales.unsqueeze(1)).round().to(torch.int8), "scales": scales}

    def _coding(
        self, scores: np.ndarray[Any, Any], rows: np.ndarray[Any, Any], weight: float | None
    ) -> Coding:
        best: dict[str, Candidate] = {}
        for score, row in zip(scores.tolist(), rows.tolist(), strict=True):
            candidate = self._candidate(row, score)
            if candidate is not None:
                best.setdefault(candidate.pt, candidate)
            if len(best) == self.k:
                break
        candidates = tuple(best.values())
        nil = not candidates or candidates[0].score < self.nil_below
        return Coding(candidates, nil, None if weight is None else round(weight, 4))

    def _candidate(self, row: int, score: float) -> Candidate | None:
        """What a row of the index stands for; None for a phrase that is not near enough."""
        if row < len(self.terms):
            term = self.terms[row]
            return Candidate(term.llt, term.pt, term.soc, round(score, 4))
        assert self.phrases is not None
        if score < self.phrases.at_least:
            return None
        place = row - len(self.terms)
        term = self._head[self.phrases.pts[place]]
        return Candidate(term.llt, term.pt, term.soc, round(score, 4), self.phrases.texts[place])


def unpack(stored: dict[str, torch.Tensor]) -> torch.Tensor:
    """What `NormalizationModel.pack` made of (rows, dimension)."""
    return stored["terms"].float() * stored["scales"].float().unsqueeze(1)


def _phrases(release: Release, terms: Sequence[Term], dimension: int) -> Phrases | None:
    """Raises ReleaseError where phrases, vectors and terminology do not fit together."""
    if PHRASES not in release.manifest.files:
        return None
    texts, pts = patient_phrases.read(release.file(PHRASES))
    if unknown := set(pts) - {t.pt for t in terms}:
        raise ReleaseError(
            f"{release.version}: no preferred term {min(unknown)!r}, which a phrase stands for"
        )
    vectors = unpack(read_tensors(release.file(PHRASE_VECTORS)))
    if vectors.shape != (len(texts), dimension):
        raise ReleaseError(f"{release.version}: {tuple(vectors.shape)} vectors for {len(texts)} phrases")
    return Phrases(texts, pts, vectors, release.manifest.configuration["phrases_at_least"])


def _refiner(release: Release, device: str, dtype: torch.dtype) -> Refiner:
    """S_context with what was trained of it, and S_isolated, its base as it is or with an adapter of its own.
    The two may stand on different bases.
    """
    manifest, settings = release.manifest, release.manifest.configuration
    context_base = settings.get("context_base", manifest.base)
    bases = {context_base: settings.get("context_base_sha256"), manifest.base: manifest.base_sha256}
    for base, digest in bases.items():
        if digest is not None and base_digest(base) != digest:
            raise ReleaseError(f"{release.version}: the base {base} has another sha256 than declared")
    parts = {n: release.file(n) if n in manifest.files else None for n in (ADAPTER, WEIGHTS, ISOLATED)}
    if parts[ADAPTER] is None and parts[WEIGHTS] is None:
        raise ReleaseError(f"{release.version}: {DCR} without a trained S_context")
    common: dict[str, Any] = {"device": device, "dtype": dtype, "max_pieces": settings["max_pieces"]}
    isolated = Encoder.load(manifest.base, adapter=parts[ISOLATED], **common)
    context = Encoder.load(context_base, adapter=parts[ADAPTER], weights=parts[WEIGHTS], **common)
    stored = read_tensors(release.file(DCR))
    return Refiner(
        isolated,
        context_refining.context_encoder(context, stored["tokens"], settings["window"]),
        context_refining.refining_of(stored, isolated.dimension),
    )
