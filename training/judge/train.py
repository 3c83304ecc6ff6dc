"""Fits the head of a judge to vectors, which are standardized while it learns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from models.judge.head import EVENT, MEANING, WITHDRAWN, JudgeHead, Rule
from training.judge.data import NO_EVENT, console
from training.judge.settings import Settings

BATCH = 256
#: Share of the steps in which the learning rate rises; it falls to 0 in the others.
WARM_UP = 0.1


class Row(NamedTuple):
    """A mention: its vector, and its class or NO_EVENT."""

    vector: Tensor
    name: str


class Fitted(NamedTuple):
    """A head and the rule of its decisions."""

    head: JudgeHead
    rule: Rule


def fit(rows: Sequence[Row], settings: Settings) -> Fitted:
    """A head of the classes that the rows have."""
    torch.manual_seed(settings.seed)
    present = {row.name for row in rows}
    classes = tuple(name for name in MEANING if name in present)
    vectors = torch.stack([row.vector for row in rows])
    right = torch.tensor([[_is_right(name, row.name) for name in classes] for row in rows])
    mean, scale = vectors.mean(0), vectors.std(0).clamp(min=1e-4)
    head = JudgeHead(len(mean), len(classes), settings.hidden)
    _learn(head, (vectors - mean) / scale, right, settings)
    _fold(head, mean, scale)
    return Fitted(head, Rule(classes, settings.threshold, settings.raised_from))


def _is_right(name: str, marked: str) -> bool:
    """Whether a class is right for a mention; of what nobody marked is known that it is no event."""
    return name not in (EVENT, WITHDRAWN) if marked == NO_EVENT else name == marked


def _learn(head: JudgeHead, vectors: Tensor, right: Tensor, settings: Settings) -> None:
    """Maximizes the probability of the right classes together. Both inputs have a row for each mention."""
    optimizer = torch.optim.AdamW(head.parameters(), lr=settings.lr, weight_decay=settings.decay)
    steps = settings.epochs * -(-len(vectors) // BATCH)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / (WARM_UP * steps), (steps - step) / steps)
    )
    for epoch in range(1, settings.epochs + 1):
        total = 0.0
        for batch in torch.split(torch.randperm(len(vectors)), BATCH):
            inputs = nn.functional.dropout(vectors[batch], settings.dropout)
            chances = head(inputs).log_softmax(-1).masked_fill(~right[batch], -torch.inf)
            loss = -chances.logsumexp(-1).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += float(loss.detach()) * len(batch)
        console.print(f"epoch {epoch}: loss {total / len(vectors):.4f}", highlight=False)
    head.eval()


@torch.inference_mode()
def _fold(head: JudgeHead, mean: Tensor, scale: Tensor) -> None:
    """Makes the first layer read vectors as they are."""
    first = head.output if head.hidden is None else head.hidden
    first.weight /= scale
    shift: Tensor = torch.mv(first.weight, mean)
    first.bias.sub_(shift)
