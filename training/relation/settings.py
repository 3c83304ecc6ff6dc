"""What the trainings of the two spaces share: their settings, and epochs until validation is no longer
better.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from rich.console import Console
from torch import Tensor, nn
from transformers import get_linear_schedule_with_warmup

from models.encoder.layer_split import layers_of
from models.encoder.model import Encoder
from models.relation.neighbours import Vote
from training.common import adapter
from training.common.checkpoint import Checkpoint

console = Console()


@dataclass(frozen=True, slots=True)
class Settings:
    """What makes a run what it is; where the paper has another value its own stands in the comment."""

    base: str = "mini"
    split: str = "ade_fold_1"
    seed: int = 42
    limit: int = 0
    precision: str = "float32"
    epochs: int = 8  # 20
    patience: int = 3
    rank: int = 96
    """of what is stored of the entities' encoder; its linear layers are trained whole"""
    # Entities: CLNER.
    lr: float = 3e-4  # 1e-5, for an encoder five times as large
    batch: int = 32  # 16
    width: int = 128
    samples: int = 80
    temperature: float = 0.1
    negatives: int = 1500
    """sentences without an event in each epoch, others each time; none in the paper"""
    ignore_drugs: bool = True
    cross_entropy: float = 1.0
    """weight of a cross-entropy beside the contrast; 0 in the paper"""
    contrast: float = 1.0
    vote: Vote = "majority"
    # Relations: CLDR and CLGS.
    below: int = 0
    """frozen lower layers; 0: half of them"""
    pair_rank: int = 64
    pair_lr: float = 2e-4  # 1e-5
    pair_batch: int = 8
    pair_epochs: int = 3  # 20
    hard: int = 8
    pair_contrast: float = 1.0
    """weight of a contrast between related and unrelated pairs; 0 in the paper"""
    self_loop: float = 0.8
    paired: bool = False
    text_relu: bool = False
    inside: bool = False

    def lower(self, model: Any) -> int:
        """How many layers are frozen."""
        return self.below or len(layers_of(model)) // 2


class Space(Protocol):
    """A space in training."""

    def epoch(self, number: int) -> float:
        """One pass over the data; the mean loss. What it draws depends on its number alone."""
        ...

    def validate(self) -> dict[str, float]:
        """Scores, the one that decides first."""
        ...

    def trained(self) -> list[nn.Module]:
        """The modules that learn."""
        ...

    optimizer: Any
    schedule: Any


def optimizer_of(groups: list[dict[str, Any]], epochs: int, batches: int) -> tuple[Any, Any]:
    """Adam with a rate that rises over a tenth of the steps and falls to nothing."""
    optimizer = torch.optim.Adam(groups, fused=True)
    steps = epochs * max(1, batches)
    schedule: Any = get_linear_schedule_with_warmup(optimizer, steps // 10, steps)  # type: ignore[no-untyped-call]
    return optimizer, schedule


def step(space: Space, loss: Tensor, parameters: list[nn.Parameter]) -> float:
    space.optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(parameters, 1.0)
    space.optimizer.step()
    space.schedule.step()
    return loss.item()


def fit(space: Space, name: str, epochs: int, settings: Settings, folder: Path | None) -> dict[str, float]:
    """Trains until `patience` epochs were no better, leaves the best epoch's weights in the modules, and
    gives its scores. A killed run goes on in its folder.
    """
    checkpoint = Checkpoint(folder / name if folder else None, asdict(settings))
    stored = checkpoint.load()
    if stored is None:
        start = space.validate()
        stored = {"curve": [start], "best": -1.0, "kept": _weights(space), "row": start, "worse": 0}
    else:
        _put(space, stored["now"])
        space.optimizer.load_state_dict(stored["optimizer"])
        space.schedule.load_state_dict(stored["schedule"])
    for n, row in enumerate(stored["curve"]):
        console.print(line(name, n, row), highlight=False, soft_wrap=True)
    for n in range(len(stored["curve"]), epochs + 1):
        if stored["worse"] >= settings.patience:
            break
        started = time.monotonic()
        loss = space.epoch(n)
        scores = space.validate()
        row = scores | {"loss": loss, "seconds": round(time.monotonic() - started)}
        stored["curve"].append(row)
        better = next(iter(scores.values())) > stored["best"]
        if better:
            stored |= {"best": next(iter(scores.values())), "kept": _weights(space), "row": scores}
        stored["worse"] = 0 if better else stored["worse"] + 1
        state = {"optimizer": space.optimizer.state_dict(), "schedule": space.schedule.state_dict()}
        checkpoint.save(stored | {"now": _weights(space)} | state)
        console.print(line(name, n, row) + ("  kept" if better else ""), highlight=False, soft_wrap=True)
    _put(space, stored["kept"])
    best: dict[str, float] = stored["row"]
    return best


def line(name: str, epoch: int, row: dict[str, float]) -> str:
    loss = f"loss {row['loss']:.4f}  {row['seconds']:.0f} s" if "loss" in row else "untrained"
    scores = ", ".join(f"{k} {v:.4f}" for k, v in row.items() if k not in {"loss", "seconds"})
    return f"{name} epoch {epoch:2d}  {loss}  validation: {scores}"


def open_weights(encoder: Encoder, below: int) -> None:
    """Of an encoder the weights of the linear layers above the first `below` layers are trained, which an
    adapter can hold.
    """
    for name, parameter in encoder.model.named_parameters():
        parameter.requires_grad_("embeddings." not in name and "pooler" not in name)
    adapter.only_linear(encoder.model)
    # Backwards through the fused attention takes a fifth of a step on a processor.
    encoder.model.set_attn_implementation("eager")
    for layer in list(layers_of(encoder.model))[:below]:
        layer.requires_grad_(False)


def _weights(space: Space) -> list[dict[str, Tensor]]:
    return [adapter.trained_state(module) for module in space.trained()]


def _put(space: Space, weights: list[dict[str, Tensor]]) -> None:
    for module, state in zip(space.trained(), weights, strict=True):
        adapter.restore(module, state)
