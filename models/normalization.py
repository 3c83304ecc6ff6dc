"""Codes a mention to a terminology: nearest lowest-level term by cosine, one candidate for each preferred
term.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from pydantic import TypeAdapter

from models import terminology
from models.encoder import Encoder, encoder_of
from models.index import CosineIndex
from models.release import Release, ReleaseError
from models.tensors import read_tensors
from models.terminology import Term
from models.types import Candidate, Coding, Query

#: A preferred term has several lowest-level terms: so many nearest terms are looked at to find k different
#: ones.
TERMS_FOR_EACH_CANDIDATE = 12


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
    ) -> None:
        self.encoder = encoder
        self.terms = list(terms)
        self.k = k
        self.nil_below = nil_below
        self._index = CosineIndex(vectors.numpy(), device)

    @classmethod
    def load(
        cls, release: Release, *, device: str = "cpu", dtype: torch.dtype = torch.float32
    ) -> NormalizationModel:
        """Raises ReleaseError when base, terminology and vectors do not fit together."""
        configuration = release.manifest.configuration
        encoder = encoder_of(release, device=device, dtype=dtype)
        terms = terminology.load(release.file("terminology.tsv"))
        stored = read_tensors(release.file("vectors.safetensors"))
        vectors = stored["terms"].float() * stored["scales"].float().unsqueeze(1)
        if vectors.shape != (len(terms), encoder.dimension):
            raise ReleaseError(f"{release.version}: {tuple(vectors.shape)} vectors for {len(terms)} terms")
        return cls(encoder, terms, vectors, configuration["k"], configuration["nil_below"], device)

    @staticmethod
    def canary_inputs(stored: list[Any]) -> list[Query]:
        return TypeAdapter(list[Query]).validate_python(stored)

    def predict(self, batch: Sequence[Query]) -> list[Coding]:
        """The k best preferred terms of each mention; NIL when the best is below the release's threshold."""
        if not batch:
            return []
        vectors = self.encoder.embed([q.surface for q in batch]).numpy()
        scores, rows = self._index.search(vectors, self.k * TERMS_FOR_EACH_CANDIDATE)
        return [self._coding(s, r) for s, r in zip(scores, rows, strict=True)]

    @staticmethod
    def pack(vectors: torch.Tensor) -> dict[str, torch.Tensor]:
        """Unit vectors (terms, dimension) in 8 bits with a scale for each row; the cosine moves by about
        0.001.
        """
        scales = vectors.abs().amax(1).clamp(min=1e-12) / 127
        return {"terms": (vectors / scales.unsqueeze(1)).round().to(torch.int8), "scales": scales}

    def _coding(self, scores: np.ndarray[Any, Any], rows: np.ndarray[Any, Any]) -> Coding:
        best: dict[str, Candidate] = {}
        for score, row in zip(scores.tolist(), rows.tolist(), strict=True):
            term = self.terms[row]
            if term.pt not in best:
                best[term.pt] = Candidate(term.llt, term.pt, term.soc, round(score, 4))
            if len(best) == self.k:
                break
        candidates = tuple(best.values())
        return Coding(candidates, nil=not candidates or candidates[0].score < self.nil_below)
