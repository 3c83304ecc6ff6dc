"""The m-network in training (Seneviratne et al. 2022, section 3): an encoder of which only the last layer
learns, and the losses over the energies of long forms.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from models.acronym.m_network import SIZE, MNetwork
from models.encoder.layers import layers_of
from models.encoder.model import Encoder
from training.acronym.settings import Objective, Settings
from training.common import adapter
from training.common.precision import mixed

#: Margins of the authors' code.
MARGINS = {"triplet": 0.5, "m": 0.4}
DROPOUT = 0.5


def loss_of(energies: Tensor, objective: Objective) -> Tensor:
    """Mean loss of (rows, m) energies: the right long form's first, infinite where there is no candidate;
    every row has a wrong one.

    triplet: max(0, d(a, p) - d(a, n) + margin), over all negatives (equation 1). m: the same with the nearest
    negative alone (equation 2).
    """
    right, wrong = energies[:, :1], energies[:, 1:]
    margin = MARGINS[objective]
    if objective == "m":
        return (right[:, 0] - wrong.min(1).values + margin).clamp(min=0).mean()
    exists = wrong.isfinite()
    return (right - wrong.masked_fill(~exists, 0) + margin).clamp(min=0)[exists].mean()


def trained_network(settings: Settings) -> TrainedNetwork:
    """A network over a copy of the base whose last layer learns."""
    base = Encoder.load(settings.base, max_pieces=settings.pieces)
    plain = copy.deepcopy(base.model)
    # The backward pass of the fused attention takes half of a step on a CPU.
    plain.set_attn_implementation("eager")
    encoder = adapter.trainable(Encoder(plain, base.tokenizer, base.max_pieces), rank=0)
    learning = {id(parameter) for parameter in layers_of(encoder.model)[-1].parameters()}
    for parameter in encoder.model.parameters():
        parameter.requires_grad_(parameter.requires_grad and id(parameter) in learning)
    for module in encoder.model.modules():
        # Drawing its random numbers would take a fifth of a step; the layer has a dropout of its own.
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return TrainedNetwork(encoder, nn.Linear(base.dimension, SIZE), settings)


class TrainedNetwork(MNetwork):
    """An m-network through which gradients flow, with dropout while its layer is in training."""

    def __init__(self, encoder: Encoder, dense: nn.Linear, settings: Settings) -> None:
        super().__init__(encoder, dense)
        self.precision, self.shared = settings.precision, settings.shared_dropout

    def pooled(self, texts: Sequence[tuple[int, ...]]) -> Tensor:
        with mixed(self.precision, self.encoder.model.device):
            return super().pooled(texts)

    def dropped(self, pooled: Tensor) -> Tensor:
        """With the same mask for all texts of a question, or with one for each text."""
        shape = pooled[:1] if self.shared else pooled
        return pooled * nn.functional.dropout(torch.ones_like(shape), DROPOUT, self.dense.training)
