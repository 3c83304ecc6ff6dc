"""The encoders, the matrices and the loss of Dynamic Context Refining (CONORM-EN) while they are trained."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from models.encoder.added_tokens import extended_embedding
from models.encoder.model import Encoder
from models.encoder.weights import ADAPTER, WEIGHTS, merge_adapter
from models.normalization.context_refining import (
    DCR,
    ISOLATED,
    DynamicContextRefining,
    Refiner,
    context_encoder,
    pool_with_gradients,
    stored_tensors,
)
from models.normalization.model import NormalizationModel
from models.releases.manifest import Release, ReleaseError
from models.terminology import Term
from training.common.adapter import in_8_bits, quantized, trainable, trained_state
from training.common.precision import mixed
from training.normalization.data import Example
from training.normalization.settings import CONTEXT_WORDS, Settings

#: Pieces of a term or a mention.
MAX_PIECES = 64
#: Candidates that are kept with each event.
CANDIDATES = 5


class RefiningNetwork:
    """S_context, M_K and M_Q, which are trained, and S_isolated, which is frozen."""

    def __init__(
        self, isolated: Encoder, terms: Sequence[Term], settings: Settings, device: torch.device
    ) -> None:
        """S_isolated must be on the device. S_context begins as it, or as another base."""
        self.isolated, self.terms, self.device = isolated, list(terms), device
        self._settings = settings
        other = settings.context_base
        own = copied(Encoder.load(other, max_pieces=MAX_PIECES) if other else isolated)
        self.context = trainable(context_encoder(own, None, settings.window), 0)
        extended_embedding(self.context).rows.requires_grad_(True)
        self.refining = DynamicContextRefining(isolated.dimension)
        self._frozen_vectors: dict[str, Tensor] = {}
        self.vectors = isolated.embed([t.llt for t in self.terms]).clone()
        """(terms, d) unit vectors of S_isolated on the CPU"""

    def modules(self) -> list[nn.Module]:
        """The modules that are trained."""
        return [self.context.model, self.refining]

    def model(self) -> NormalizationModel:
        """The network as it is served, without NIL; the matrices are on the CPU."""
        words = CONTEXT_WORDS if self._settings.search == "phrases" else 0
        refiner = Refiner(self.isolated, self.context, copy.deepcopy(self.refining).cpu(), words)
        return NormalizationModel(
            self.isolated, self.terms, self.vectors, k=CANDIDATES, nil_below=0.0, refiner=refiner
        )

    def files(self) -> dict[str, dict[str, Tensor]]:
        """File name to tensors of a release: the matrices, and the change of S_context in 8 bits."""
        before = dict(Encoder.load(self._settings.base_of_context).model.named_parameters())
        after = {n: p for n, p in trained_state(self.context.model).items() if n in before}
        changes = in_8_bits({name: p - before[name].detach().cpu() for name, p in after.items()})
        return {DCR: stored_tensors(self.refining, self.context), ADAPTER: changes}

    def refined(self, batch: Sequence[Example]) -> Tensor:
        """e' (batch, d) with gradients, of examples with context."""
        with mixed(self._settings.precision, self.device):
            e_context = pool_with_gradients(self.context, [e.pieces or [] for e in batch])
        refined: Tensor = self.refining(e_context, self._frozen([e.query.surface for e in batch]))[0]
        return refined

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


def cosine_embedding(refined: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    """The loss of CONORM-EN, all (n, d): mean over 2n pairs of 1 - cos(e', m) and of max(0, cos(e', m))."""
    loss = nn.functional.cosine_embedding_loss
    same = torch.ones(len(refined), device=refined.device)
    return (loss(refined, positive, same, margin=0.0) + loss(refined, negative, -same, margin=0.0)) / 2


def isolated_encoder(base: str, device: torch.device | str, start: Release | None = None) -> Encoder:
    """S_isolated, as a copy that may be changed: the base, or the encoder of a release over it, such as one
    of idiom vectors; of a release with S_context its S_isolated. Raises ReleaseError for another base.
    """
    files: dict[str, Any] = {}
    if start is not None:
        if start.manifest.base != base:
            raise ReleaseError(f"{start.version} is no release over {base} to begin with")
        held = start.manifest.files
        own = {"adapter": ISOLATED if DCR in held else ADAPTER, "weights": WEIGHTS}
        files = {part: start.file(name) for part, name in own.items() if name in held}
    return copied(Encoder.load(base, device=str(device), max_pieces=MAX_PIECES, **files))


def stored_change(release: Release) -> str:
    """The file with the change of a release's S_isolated from the base in 8 bits; "" where it has none."""
    file = ISOLATED if DCR in release.manifest.files else ADAPTER
    return file if file in release.manifest.files else ""


def as_stored(model: nn.Module, base: str, device: torch.device | str) -> tuple[Encoder, dict[str, Tensor]]:
    """S_isolated as it will be served, and its change from the base in 8 bits; none where it is the base."""
    changes = quantized(Encoder.load(base).model, model)
    encoder = isolated_encoder(base, device)
    merge_adapter(encoder.model, changes)
    return encoder, changes


def copied(encoder: Encoder) -> Encoder:
    """Loaded weights are shared in the process and must not be changed."""
    return Encoder(copy.deepcopy(encoder.model), encoder.tokenizer, encoder.max_pieces)
