"""Losses over the energies of long forms (Seneviratne et al. 2022, section 3)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from training.acronym.settings import Objective

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
