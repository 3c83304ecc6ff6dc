"""Fits a linear ranker: the softmax over the candidates of a text shall be that over their values (ListNet,
Cao et al. 2007). Fits logistic regressions too.
"""

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


def logistic(x: Tensor, y: Tensor, penalty: float) -> Tensor:
    """(features, outputs) weights of one logistic regression for each column of y (n, outputs), which is 0 or
    1. `penalty` is the inverse strength of the L2 penalty, which leaves out the last feature, a constant 1.
    """
    weights = torch.zeros(x.shape[1], y.shape[1], dtype=x.dtype, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=200, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        errors = torch.nn.functional.binary_cross_entropy_with_logits(x @ weights, y, reduction="sum")
        total = penalty * errors + 0.5 * weights[:-1].square().sum()
        total.backward()  # type: ignore[no-untyped-call]
        return total

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    return weights.detach()
