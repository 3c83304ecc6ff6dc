"""The encoders, matrices and term vectors of Dynamic Context Refining while they are trained."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from models.encoder.added_tokens import extended_embedding
from models.encoder.model import Encoder
from models.normalization.context_refining import (
    DynamicContextRefining,
    Refiner,
    context_encoder,
    pool_with_gradients,
)
from models.normalization.model import NormalizationModel
from models.normalization.patient_phrases import Phrases
from models.terminology import Term
from training.common.adapter import trainable
from training.common.precision import mixed
from training.normalization.data import Example
from training.normalization.settings import CANDIDATES, Settings


class Encoders(NamedTuple):
    """S_isolated and S_context before training."""

    isolated: Encoder
    context: Encoder


class IsolatedNetwork:
    """S_isolated alone, for a release that reads no sentence; it is not trained here."""

    def __init__(self, isolated: Encoder, terms: Sequence[Term]) -> None:
        self.isolated, self.terms = isolated, list(terms)
        self.vectors = isolated.embed([t.llt for t in self.terms]).clone()
        """(terms, d) unit vectors of S_isolated on the CPU"""

    def refiner(self) -> Refiner | None:
        """None: vectors are not refined by sentences."""
        return None

    def model(
        self,
        k: int = CANDIDATES,
        nil_below: float = 0.0,
        phrases: Phrases | None = None,
        taught: Phrases | None = None,
        vote: float = 0.0,
    ) -> NormalizationModel:
        """The network as it is served."""
        return NormalizationModel(
            self.isolated,
            self.terms,
            self.vectors,
            k=k,
            nil_below=nil_below,
            refiner=self.refiner(),
            phrases=phrases,
            taught=taught,
            vote=vote,
        )


class RefiningNetwork(IsolatedNetwork):
    """S_context, M_K and M_Q, which are trained, and S_isolated, which is frozen."""

    def __init__(
        self, encoders: Encoders, terms: Sequence[Term], settings: Settings, device: torch.device
    ) -> None:
        """A copy of S_context is trained. S_isolated must be on the device."""
        self.device = device
        self._precision = settings.precision
        isolated, context = encoders
        own = Encoder(copy.deepcopy(context.model), context.tokenizer, context.max_pieces)
        self.context = trainable(context_encoder(own, None, settings.window), 0)
        extended_embedding(self.context).rows.requires_grad_(True)
        self.refining = DynamicContextRefining(isolated.dimension)
        self._frozen_vectors: dict[str, Tensor] = {}
        super().__init__(isolated, terms)

    def modules(self) -> list[nn.Module]:
        """The modules that are trained."""
        return [self.context.model, self.refining]

    def refiner(self) -> Refiner:
        """Encoders and matrices as for serving: the matrices on the CPU."""
        return Refiner(self.isolated, self.context, copy.deepcopy(self.refining).cpu())

    def refined(self, batch: Sequence[Example]) -> Tensor:
        """e' (batch, d) with gradients, e_isolated where there is no context."""
        e_isolated = self._frozen([e.query.surface for e in batch])
        inside = [i for i, e in enumerate(batch) if e.pieces is not None]
        if not inside:
            return e_isolated
        with mixed(self._precision, self.device):
            e_context = pool_with_gradients(self.context, [e.pieces for e in batch if e.pieces is not None])
        refined, _ = self.refining(e_context, e_isolated[inside])
        return e_isolated.index_copy(0, torch.tensor(inside, device=refined.device), refined)

    def term_vectors(self, rows: Sequence[int]) -> Tensor:
        """(rows, d) on the device."""
        return self.vectors[list(rows)].to(self.device)

    def _frozen(self, surfaces: Sequence[str]) -> Tensor:
        """e_isolated (surfaces, d) of the frozen S_isolated, which encodes each text once in a run."""
        new = [s for s in dict.fromkeys(surfaces) if s not in self._frozen_vectors]
        if new:
            # A copy: tensors computed in inference mode cannot be saved for a gradient.
            self._frozen_vectors |= dict(zip(new, self.isolated.mean_pooled(new).clone(), strict=True))
        return torch.stack([self._frozen_vectors[s] for s in surfaces]).to(self.device)
