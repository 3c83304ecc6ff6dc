"""Fits a linear ranker: softmax over a text's candidates to that over their values (ListNet, 2007)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

EPOCHS, RATE, DECAY = 250, 1e-2, 0.01
#: A feature that varies less counts as constant.
_LEAST_DEVIATION = 1e-3


class Group(NamedTuple):
    """The candidates of one text: features of each, and how good each is."""

    features: Sequence[Sequence[float]]
    values: Sequence[float]


def fit(groups: Sequence[Group], names: Sequence[str], temperature: float) -> dict[str, float]:
    """The weight of each feature. `temperature`: difference of values by which one candidate counts e times
    as much as another. Raises ValueError without groups of more than one candidate.
    """
    kept = [g for g in groups if len(g.values) > 1]
    if not kept:
        raise ValueError("no text with two candidates to learn from")
    x = torch.cat([torch.tensor(g.features, dtype=torch.float64) for g in kept])
    target = torch.cat(
        [torch.tensor(g.values, dtype=torch.float64).div(temperature).softmax(0) for g in kept]
    )
    group = torch.cat([torch.full((len(g.values),), i) for i, g in enumerate(kept)])
    deviation = x.std(0)
    scale = torch.where(deviation > _LEAST_DEVIATION, deviation, torch.inf)
    x = (x - x.mean(0)) / scale
    weights = torch.zeros(x.shape[1], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.AdamW([weights], lr=RATE, weight_decay=DECAY)
    for _ in range(EPOCHS):
        loss = -(target * _log_softmax(x @ weights, group, len(kept))).sum() / len(kept)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return dict(zip(names, (weights.detach() / scale).tolist(), strict=True))


def _log_softmax(scores: Tensor, group: Tensor, groups: int) -> Tensor:
    """Of the scores within each group; scores are small, as features are standardised."""
    totals = torch.zeros(groups, dtype=scores.dtype).index_add(0, group, scores.exp())
    return scores - totals.log()[group]
