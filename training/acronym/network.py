"""The m-network in training (Seneviratne et al. 2022, section 3): an encoder of which only the upper layers
learn, and the losses over the energies of long forms.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence, Set

import torch
from torch import Tensor, nn

from models.acronym.acronym_encoder import AcronymEncoder, MarkedPieces, Vectors, join, means
from models.acronym.m_network import Head, MNetwork
from models.encoder.layers import layers_of
from models.encoder.model import Encoder
from training.acronym.settings import Objective, Settings
from training.common import adapter
from training.common.precision import mixed

#: Margins of the authors' code.
MARGINS = {"triplet": 0.5, "m": 0.4}


def loss_of(energies: Tensor, objective: Objective) -> Tensor:
    """Mean loss of (rows, m) energies: the right long form's first, infinite where there is no candidate;
    every row has a wrong one.

    triplet: max(0, d(a, p) - d(a, n) + margin), over all negatives (equation 1). m: the same with the nearest
    negative alone (equation 2). softmax: cross-entropy of the right one among all (InfoNCE).
    """
    if objective == "softmax":
        right_column = torch.zeros(len(energies), dtype=torch.long, device=energies.device)
        return nn.functional.cross_entropy(-energies, right_column)
    right, wrong = energies[:, :1], energies[:, 1:]
    margin = MARGINS[objective]
    if objective == "m":
        return (right[:, 0] - wrong.min(1).values + margin).clamp(min=0).mean()
    exists = wrong.isfinite()
    return (right - wrong.masked_fill(~exists, 0) + margin).clamp(min=0)[exists].mean()


def trained_network(settings: Settings) -> MNetwork:
    """A network over a copy of the base whose last `settings.layers` layers, or an adapter on them, learn."""
    base = Encoder.load(settings.base, max_pieces=settings.pieces)
    plain = copy.deepcopy(base.model)
    # The backward pass of the fused attention takes half of a step on a CPU.
    plain.set_attn_implementation("eager")
    whole = Encoder(plain, base.tokenizer, base.max_pieces)
    encoder = TrainedEncoder(adapter.trainable(whole, settings.rank), settings.precision)
    network = MNetwork(encoder, Head(base.dimension, settings.shape))
    network.encoder = encoder
    upper = layers_of(encoder.model)[-settings.layers :]
    learning = {id(parameter) for layer in upper for parameter in layer.parameters()}
    for parameter in encoder.model.parameters():
        parameter.requires_grad_(parameter.requires_grad and id(parameter) in learning)
    for module in encoder.model.modules():
        # Drawing its random numbers would take a fifth of a step; the head has a dropout of its own.
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return network


class TrainedEncoder(AcronymEncoder):
    """An encoder of marked texts through which gradients flow."""

    def __init__(self, encoder: Encoder, precision: str) -> None:
        super().__init__(encoder)
        self.precision = precision

    def vectors(self, texts: Sequence[MarkedPieces], cached: Set[MarkedPieces] = frozenset()) -> Vectors:
        """Vectors of each text, on the device of the model; equal texts are encoded once, none is kept."""
        unique = list(dict.fromkeys(texts))
        order: list[int] = []
        parts = []
        with mixed(self.precision, self.model.device):
            for batch, hidden in self.hidden([t.pieces for t in unique]):
                order += batch
                parts.append(means(hidden, [unique[i] for i in batch]))
        row_of = {unique[i]: row for row, i in enumerate(order)}
        rows = torch.tensor([row_of[t] for t in texts], device=self.model.device)
        return Vectors(*(part[rows] for part in join(parts)))
