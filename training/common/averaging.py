"""The mean of the weights after the last epochs of a run (Izmailov et al. 2018)."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

Weights = list[dict[str, Tensor]]


class LastEpochs:
    """The weights after the last `number` epochs: of each module its tensors by name."""

    def __init__(self, number: int) -> None:
        self._weights: deque[Weights] = deque(maxlen=number)

    def add(self, weights: Weights) -> None:
        """Those after one more epoch."""
        self._weights.append(weights)

    def mean(self) -> Weights:
        """The mean of each tensor; empty before the first epoch."""
        if not self._weights:
            return []
        return [
            {name: torch.stack([epoch[i][name] for epoch in self._weights]).mean(0) for name in module}
            for i, module in enumerate(self._weights[-1])
        ]

    def state(self) -> list[Weights]:
        """What `restore` takes."""
        return list(self._weights)

    def restore(self, state: Sequence[Sequence[Mapping[str, Tensor]]]) -> None:
        """Continues from `state`."""
        self._weights.extend([dict(module) for module in epoch] for epoch in state)
