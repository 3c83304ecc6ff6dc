"""A run that trains Dynamic Context Refining epoch by epoch, and what a release holds of it."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import torch
from torch import Tensor

from models.encoder.weights import ADAPTER, WEIGHTS
from models.normalization.context_refining import stored_tensors
from models.normalization.model import DCR, ISOLATED, NormalizationModel
from training.common.adapter import adapter_tensors, files
from training.common.checkpoint import Checkpoint
from training.common.coding_split import pts_by_term, query, right_terms
from training.common.corpora import GoldCoding
from training.normalization.context_refining import examples
from training.normalization.trainer import Trainer

Adapter = Mapping[str, Tensor]


def accuracy(model: NormalizationModel, golds: Sequence[GoldCoding]) -> tuple[float, float]:
    """Share of mentions whose best preferred term is right, over those with a gold term that the terminology
    knows; and the mean context weight of those with context.
    """
    by_term = pts_by_term(model.terms)
    known = [(g, right) for g in golds if (right := right_terms(g, by_term))]
    found = model.predict([query(g) for g, _ in known])
    hits = sum(c.candidates[0].pt in right for c, (_, right) in zip(found, known, strict=True))
    weights = [c.context_weight for c in found if c.context_weight is not None]
    return hits / max(1, len(known)), sum(weights) / max(1, len(weights))


def train(
    trainer: Trainer,
    training: Sequence[GoldCoding],
    validation: Sequence[GoldCoding],
    folder: Path | None = None,
    report: Callable[[str], object] = print,
) -> list[dict[str, float]]:
    """Leaves the trainer with its best epoch, and gives the curve; goes on where a killed run in `folder`
    was.
    """
    settings = trainer.settings
    data = examples(training, trainer.terms, trainer.context)
    if not settings.isolated:
        # Without context there is nothing that could learn.
        data = [e for e in data if e.pieces is not None]
    if not data:
        raise ValueError("no training mention has both a sentence and a term that the terminology knows")
    optimizer = torch.optim.AdamW(trainer.parameters, lr=settings.lr, fused=True)
    steps = settings.epochs * -(-len(data) // settings.batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=settings.lr, total_steps=steps)
    checkpoint = Checkpoint(folder, asdict(settings))
    curve: list[dict[str, float]] = []
    best, kept = -1.0, trainer.state()
    if stored := checkpoint.load():
        curve, best, kept = stored["curve"], stored["best"], stored["kept"]
        trainer.seconds = stored["seconds"]
        trainer.restore(stored["last"])
        optimizer.load_state_dict(stored["optimizer"])
        schedule.load_state_dict(stored["schedule"])
    report(f"{len(data)} training mentions, {len(validation)} for validation")
    for epoch in range(len(curve) + 1, settings.epochs + 1):
        started = time.monotonic()
        rng = random.Random(settings.seed * 100_003 + epoch)
        loss = trainer.train_epoch(data, optimizer, schedule, rng)
        right, weight = accuracy(trainer.model(), validation)
        better = right > best
        if better:
            best, kept = right, trainer.state()
        seconds = time.monotonic() - started
        trainer.seconds += seconds
        row = {"epoch": epoch, "loss": loss, "validation": right, "context_weight": weight}
        curve.append(row)
        report(
            f"epoch {epoch:3d}  loss {loss:.4f}  validation acc@1 {right:.4f}  context weight {weight:.3f}  "
            f"{seconds:.0f} s{'  kept' if better else ''}"
        )
        state = {"curve": curve, "best": best, "kept": kept, "last": trainer.state()}
        state |= {"seconds": trainer.seconds}
        state |= {"optimizer": optimizer.state_dict(), "schedule": schedule.state_dict()}
        checkpoint.save(state)
    trainer.restore(kept)
    return curve


def release_files(trainer: Trainer, start: Adapter, start_isolated: Adapter) -> dict[str, dict[str, Tensor]]:
    """File name to tensors; an adapter that S_context or S_isolated began with is part of what is shipped."""
    made = {DCR: stored_tensors(trainer.refining, trainer.context)}
    found = files(trainer.context.model)
    if WEIGHTS in found:
        made[WEIGHTS] = found[WEIGHTS]
    else:
        made[ADAPTER] = joined(start, found[ADAPTER])
    isolated = joined(start_isolated, adapter_tensors(trainer.isolated.model))
    return made | ({ISOLATED: isolated} if isolated else {})


def joined(one: Adapter, other: Adapter) -> dict[str, Tensor]:
    """The adapter that adds what both add: b a + b' a' = [b b'] [a ; a']."""
    made = {**one, **other}
    for name in one.keys() & other.keys():
        dim = 0 if name.endswith(".lora_a") else 1
        made[name] = torch.cat([one[name].half(), other[name].half()], dim).contiguous()
    return made
