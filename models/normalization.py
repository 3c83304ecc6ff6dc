"""Codes a mention to a terminology: nearest lowest-level term by cosine, one candidate for each preferred
term.

A release without the parts of Dynamic Context Refining (models/dcr.py) reads the mention alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from pydantic import TypeAdapter

from models import dcr, terminology
from models.dcr import Refiner
from models.encoder import ADAPTER, WEIGHTS, Encoder, base_digest, encoder_of
from models.index import CosineIndex
from models.release import Release, ReleaseError
from models.tensors import read_tensors
from models.terminology import Term
from models.types import Candidate, Coding, Query

#: A preferred term has several lowest-level terms: so many nearest terms are looked at to find k different
#: ones.
TERMS_FOR_EACH_CANDIDATE = 12
#: Matrices and the two token rows; S_context's adapter is the release's usual one.
DCR = "dcr.safetensors"
#: The adapter of S_isolated, where that one was trained too.
ISOLATED = "isolated.safetensors"


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
    ) -> None:
        """`encoder` is S_isolated, `vectors` (terms, dimension) are its; `refiner` adds the context."""
        self.encoder = encoder
        self.terms = list(terms)
        self.k = k
        self.nil_below = nil_below
        self.refiner = refiner
        self._index = CosineIndex(vectors.numpy(), device)

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
        vectors = stored["terms"].float() * stored["scales"].float().unsqueeze(1)
        if vectors.shape != (len(terms), encoder.dimension):
            raise ReleaseError(f"{release.version}: {tuple(vectors.shape)} vectors for {len(terms)} terms")
        return cls(encoder, terms, vectors, configuration["k"], configuration["nil_below"], device, refiner)

    def over(self, terms: Sequence[Term], k: int) -> NormalizationModel:
        """The same encoders over other terms, without a threshold."""
        vectors = self.encoder.embed([t.llt for t in terms])
        return NormalizationModel(self.encoder, terms, vectors, k, 0.0, refiner=self.refiner)

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
            term = self.terms[row]
            if term.pt not in best:
                best[term.pt] = Candidate(term.llt, term.pt, term.soc, round(score, 4))
            if len(best) == self.k:
                break
        candidates = tuple(best.values())
        nil = not candidates or candidates[0].score < self.nil_below
        return Coding(candidates, nil, None if weight is None else round(weight, 4))


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
        dcr.context_encoder(context, stored["tokens"], settings["window"]),
        dcr.refining_of(stored, isolated.dimension),
    )
