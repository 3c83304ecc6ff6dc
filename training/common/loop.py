"""The training loop of all programs: epochs, validation, the best epoch kept, early stopping, checkpoints.

A program describes what it trains as a `Trainee`; `TrainingLoop` runs it, prints its curve and resumes it
after a kill. The loop moves the trained modules to the device; other tensors follow `Trainee.device`.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from rich.console import Console
from rich.progress import track
from torch import Tensor, nn

from training.common.adapter import restore, trained_parameters, trained_state
from training.common.checkpoint import Checkpoint

console = Console()
B = TypeVar("B")
#: Norm to which the gradients of a step are clipped.
MAX_GRADIENT_NORM = 1.0


@dataclass(frozen=True, slots=True)
class Epoch:
    """One row of a training curve; number 0 is the untrained model."""

    number: int
    losses: dict[str, float]
    """means over the steps, by name"""
    scores: dict[str, float]
    """on the validation part; the first one decides which epoch is kept. Empty: not validated"""
    seconds: float
    kept: bool = False
    note: str = ""
    """why an epoch with a better score was not kept"""

    @property
    def loss(self) -> float:
        """The sum of the losses."""
        return sum(self.losses.values())

    def line(self, name: str = "") -> str:
        """The epoch as one line of a printed curve."""
        losses = ", ".join(f"{k} {v:.4f}" for k, v in self.losses.items()) or "untrained"
        scores = ", ".join(f"{k} {v:.4f}" for k, v in self.scores.items())
        validation = f"  validation: {scores}" if scores else ""
        note = "  kept" if self.kept else f"  {self.note}" if self.note else ""
        return f"{name} epoch {self.number:2d}  {losses}{validation}  {self.seconds:.0f} s{note}".strip()


class Trainee(ABC):
    """A model in training: what one epoch does, how it is scored, and what a checkpoint holds of it."""

    epochs: int
    patience: int = 0
    """epochs without a better score until training stops; 0: it does not stop early"""
    scores_untrained = False
    """whether the model is validated before the first epoch"""
    keeps_untrained = False
    """whether the untrained model is kept where no epoch is better; it must be scored for that"""
    device: torch.device = torch.device("cpu")
    optimizer: Any = None
    schedule: Any = None

    @abstractmethod
    def modules(self) -> Sequence[nn.Module]:
        """The modules that are trained."""

    @abstractmethod
    def epoch(self, number: int) -> dict[str, float]:
        """One pass over the data; the mean losses by name."""

    @abstractmethod
    def validate(self, number: int) -> dict[str, float]:
        """Scores of the model after epoch `number`; none where an epoch is not validated."""

    def prepare(self, number: int) -> None:  # noqa: B027  optional
        """Called before epoch `number`, and before a state saved after that epoch is restored: the place to
        begin another phase with an optimizer of its own.
        """

    def refusal(self, scores: Mapping[str, float], untrained: Mapping[str, float]) -> str:
        """Why an epoch with these scores must not be kept; empty where it may. `untrained` is empty where the
        untrained model was not scored.
        """
        return ""

    def after_step(self) -> None:  # noqa: B027  optional
        """Called after each step of the optimizer."""

    def training(self, on: bool) -> None:
        """Switches dropout on or off."""
        for module in self.modules():
            module.train(on)

    def parameters(self) -> list[nn.Parameter]:
        """What the optimizer changes."""
        return [p for module in self.modules() for p in trained_parameters(module)]

    def weights(self) -> list[dict[str, Tensor]]:
        """Copies of the trained tensors of each module by name, on the CPU."""
        return [trained_state(module) for module in self.modules()]

    def kept_weights(self) -> list[dict[str, Tensor]]:
        """What is kept of an epoch, like `weights`."""
        return self.weights()

    def load_weights(self, weights: Sequence[Mapping[str, Tensor]]) -> None:
        """Puts `weights` back; raises KeyError or ValueError where they are of another model."""
        for module, tensors in zip(self.modules(), weights, strict=True):
            restore(module, tensors)
            module.eval()

    def state(self) -> dict[str, Any]:
        """What a resumed run needs: tensors and plain values."""
        return {
            "weights": self.weights(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continues from `state`."""
        self.load_weights(state["weights"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])

    def one_pass(
        self, batches: Sequence[B], loss_of: Callable[[B], Tensor | dict[str, Tensor]], number: int
    ) -> dict[str, float]:
        """A step of the optimizer for each batch, minimising the sum; the mean losses by name."""
        parameters, sums = self.parameters(), dict[str, float]()
        self.training(True)
        shown = track(
            batches, f"epoch {number}", console=console, transient=True, disable=not console.is_terminal
        )
        for batch in shown:
            returned = loss_of(batch)
            losses = returned if isinstance(returned, dict) else {"loss": returned}
            total = returned if isinstance(returned, Tensor) else torch.stack(list(losses.values())).sum()
            self.optimizer.zero_grad()
            total.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(parameters, MAX_GRADIENT_NORM)
            self.optimizer.step()
            self.schedule.step()
            self.after_step()
            for name, value in losses.items():
                sums[name] = sums.get(name, 0.0) + value.item()
        self.training(False)
        return {name: value / len(batches) for name, value in sums.items()}


class AveragingTrainee(Trainee):
    """A trainee that keeps the mean of its last epochs' weights (Izmailov et al. 2018), not the last ones."""

    def __init__(self, average: int) -> None:
        """`average`: over how many epochs."""
        self._last_epochs: deque[list[dict[str, Tensor]]] = deque(maxlen=average)

    def end_epoch(self) -> None:
        """To be called at the end of each epoch."""
        self._last_epochs.append(self.weights())

    def kept_weights(self) -> list[dict[str, Tensor]]:
        """The means over the last epochs; before the first one the weights as they are."""
        if not self._last_epochs:
            return self.weights()
        return [
            {name: torch.stack([epoch[i][name] for epoch in self._last_epochs]).mean(0) for name in module}
            for i, module in enumerate(self._last_epochs[-1])
        ]

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Inside, the modules have the kept weights."""
        trained = self.weights()
        self.load_weights(self.kept_weights())
        try:
            yield
        finally:
            self.load_weights(trained)

    def state(self) -> dict[str, Any]:
        return super().state() | {"last_epochs": list(self._last_epochs)}

    def restore(self, state: Mapping[str, Any]) -> None:
        super().restore(state)
        self._last_epochs.extend(state["last_epochs"])


class TrainingLoop:
    """Runs a trainee; `folder` keeps what a killed run needs to resume.

    `settings` are the plain values that make a run what it is: a run resumes only under the same ones
    (CheckpointError otherwise).
    """

    def __init__(
        self, trainee: Trainee, settings: Mapping[str, Any], folder: Path | None = None, name: str = ""
    ) -> None:
        self.trainee = trainee
        self.curve: list[Epoch] = []
        self.best: Epoch | None = None
        """The epoch whose weights are kept; None: none yet."""
        self.kept: list[dict[str, Tensor]] | None = None
        """The kept weights; before the first kept epoch None."""
        self._checkpoint = Checkpoint(folder, settings)
        self._name = name
        for module in trainee.modules():
            module.to(trainee.device)

    @property
    def seconds(self) -> float:
        """What training and validation took so far, before a kill too."""
        return sum(epoch.seconds for epoch in self.curve)

    def run(self) -> None:
        """Trains what is left, prints the whole curve, and leaves the trainee with the kept weights, or with
        the last ones where no epoch was kept.
        """
        for epoch in self.epochs(self._print):
            self._print(epoch)
        self.load_best()

    def load_best(self) -> None:
        """Gives the trainee the kept weights."""
        if self.kept is not None:
            self.trainee.load_weights(self.kept)

    def epochs(self, restored: Callable[[Epoch], object] = lambda epoch: None) -> Iterator[Epoch]:
        """Yields each epoch that is trained now; `restored` is called with each that was trained before."""
        self._start()
        for epoch in self.curve:
            restored(epoch)
        first = self.curve[-1].number + 1 if self.curve else 1
        for number in range(first, self.trainee.epochs + 1):
            if self._is_exhausted(number - 1):
                break
            self.trainee.prepare(number)
            started = time.monotonic()
            losses = self.trainee.epoch(number)
            scores = self.trainee.validate(number)
            epoch = self._judged(Epoch(number, losses, scores, 0.0), time.monotonic() - started)
            self.curve.append(epoch)
            if epoch.kept:
                self.best, self.kept = epoch, self.trainee.kept_weights()
            self._save()
            yield epoch

    def _start(self) -> None:
        """Restores a stored run, or scores the untrained model where that is asked for."""
        stored = self._checkpoint.load()
        if stored is not None:
            self.curve = [Epoch(**row) for row in stored["curve"]]
            self.kept = stored["kept"]
            self.best = next((e for e in reversed(self.curve) if e.kept), None)
            self.trainee.prepare(self.curve[-1].number)
            self.trainee.restore(stored["state"])
        elif self.trainee.scores_untrained:
            epoch = Epoch(0, {}, self.trainee.validate(0), 0.0, kept=self.trainee.keeps_untrained)
            self.curve = [epoch]
            if epoch.kept:
                self.best, self.kept = epoch, self.trainee.kept_weights()

    def _judged(self, epoch: Epoch, seconds: float) -> Epoch:
        """The epoch with whether it is kept: the best score so far that is not refused, or, where nothing is
        validated, the last epoch.
        """
        note, kept = "", False
        if epoch.scores:
            untrained = self.curve[0].scores if self.curve and self.curve[0].number == 0 else {}
            note = self.trainee.refusal(epoch.scores, untrained)
            kept = not note and (self.best is None or _deciding(epoch) > _deciding(self.best))
        elif epoch.number == self.trainee.epochs:
            kept = self.best is None
        return Epoch(epoch.number, epoch.losses, epoch.scores, seconds, kept, note)

    def _is_exhausted(self, trained: int) -> bool:
        """Whether the last `patience` of the epochs trained so far were no better."""
        best = self.best.number if self.best else 0
        return 0 < self.trainee.patience <= trained - best

    def _save(self) -> None:
        rows = [asdict(epoch) for epoch in self.curve]
        self._checkpoint.save({"curve": rows, "kept": self.kept, "state": self.trainee.state()})

    def _print(self, epoch: Epoch) -> None:
        console.print(epoch.line(self._name), highlight=False, soft_wrap=True)


def _deciding(epoch: Epoch) -> float:
    return next(iter(epoch.scores.values()))


def warmup_linear(optimizer: Any, steps: int) -> Any:
    """A schedule whose rate rises over a tenth of the steps and falls linearly to 0."""
    from transformers import get_linear_schedule_with_warmup  # noqa: PLC0415  seconds to import

    return get_linear_schedule_with_warmup(optimizer, steps // 10, steps)  # type: ignore[no-untyped-call]


def steps_of(epochs: int, records: int, batch: int) -> int:
    """Steps of an optimizer in `epochs` epochs; the last batch of an epoch may be smaller."""
    return epochs * -(-records // batch)
