"""Fits the head of a judge to vectors, which are standardized while it learns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from models.judge.head import EVENT, MEANING, WITHDRAWN, JudgeHead, Rule
from training.judge.data import console
from training.judge.settings import Settings

#: Share of the texts that is held out.
HELD_OUT = 0.1
BATCH = 256
TEMPERATURES = (0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0)


class Row(NamedTuple):
    """A mention: its vector, its class, and the number of its text."""

    vector: Tensor
    name: str
    text: int


class Fitted(NamedTuple):
    """A head and the rule of its decisions."""

    head: JudgeHead
    rule: Rule


class _Part(NamedTuple):
    vectors: Tensor
    targets: Tensor


def fit(rows: Sequence[Row], settings: Settings) -> Fitted:
    """The head of the epoch with the smallest loss on held-out texts, its temperature, and the threshold that
    leaves `keep` of the held-out events.
    """
    torch.manual_seed(settings.seed)
    present = {row.name for row in rows}
    classes = tuple(name for name in MEANING if name in present)
    train, held = _parts(rows, classes)
    mean, scale = train.vectors.mean(0), train.vectors.std(0).clamp(min=1e-4)
    train, held = (part._replace(vectors=(part.vectors - mean) / scale) for part in (train, held))
    head = _best(JudgeHead(len(mean), len(classes), settings.hidden), train, held, settings)
    _fold(head, mean, scale)
    held = held._replace(vectors=held.vectors * scale + mean)
    with torch.inference_mode():
        return Fitted(head, _rule(classes, head(held.vectors), held.targets, settings))


def _parts(rows: Sequence[Row], classes: Sequence[str]) -> tuple[_Part, _Part]:
    """The rows to learn from and those held out, each text in one of them."""
    numbers = sorted({row.text for row in rows})
    order = torch.randperm(len(numbers)).tolist()
    held = {numbers[i] for i in order[: max(1, round(HELD_OUT * len(numbers)))]}
    vectors = torch.stack([row.vector for row in rows])
    targets = torch.tensor([classes.index(row.name) for row in rows])
    is_held = torch.tensor([row.text in held for row in rows])
    return _Part(vectors[~is_held], targets[~is_held]), _Part(vectors[is_held], targets[is_held])


def _best(head: JudgeHead, train: _Part, held: _Part, settings: Settings) -> JudgeHead:
    optimizer = torch.optim.AdamW(head.parameters(), lr=settings.lr, weight_decay=settings.decay)
    best, kept = float("inf"), head.state_dict()
    for epoch in range(1, settings.epochs + 1):
        head.train()
        for batch in torch.randperm(len(train.targets)).split(BATCH):
            loss = nn.functional.cross_entropy(head(train.vectors[batch]), train.targets[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        head.eval()
        with torch.inference_mode():
            logits = head(held.vectors)
            own = float(nn.functional.cross_entropy(logits, held.targets))
            right = float((logits.argmax(-1) == held.targets).float().mean())
        console.print(f"epoch {epoch}: held-out loss {own:.4f}, right {right:.4f}", highlight=False)
        if own < best:
            best, kept = own, {name: tensor.clone() for name, tensor in head.state_dict().items()}
    head.load_state_dict(kept)
    return head


@torch.inference_mode()
def _fold(head: JudgeHead, mean: Tensor, scale: Tensor) -> None:
    """Makes the first layer read vectors as they are."""
    first = head.output if head.hidden is None else head.hidden
    first.weight /= scale
    first.bias -= first.weight @ mean


def _rule(classes: tuple[str, ...], logits: Tensor, targets: Tensor, settings: Settings) -> Rule:
    losses = {t: float(nn.functional.cross_entropy(logits / t, targets)) for t in TEMPERATURES}
    rule = Rule(classes, 0.5, temperature=min(losses, key=lambda t: losses[t]))
    events = [i for i, name in enumerate(classes) if name in (EVENT, WITHDRAWN)]
    own = rule.probabilities(logits)[:, events].sum(-1)
    of_events = own[torch.isin(targets, torch.tensor(events))]
    threshold = float(of_events.quantile(1 - settings.keep)) if len(of_events) else 0.5
    others = own[~torch.isin(targets, torch.tensor(events))]
    false = float((others >= threshold).float().mean()) if len(others) else 0.0
    console.print(
        f"temperature {rule.temperature}, threshold {threshold:.4f}: {settings.keep:.0%} of the held-out "
        f"events and {false:.1%} of the others are events",
        highlight=False,
    )
    return Rule(classes, round(threshold, 4), settings.raised_from, rule.temperature)
