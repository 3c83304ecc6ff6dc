"""Training whose result is the mean of the weights after the last epochs (Izmailov et al. 2018)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from training.common.loop import Trainee


class AveragingTrainee(Trainee):
    """A trainee that keeps the mean of its last epochs' weights and goes on from its own."""

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
