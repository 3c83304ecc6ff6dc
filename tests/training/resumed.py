"""A run that is killed and goes on has the losses, the scores and the weights of a whole run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from training.common.loop import TrainingLoop

Weights = Sequence[dict[str, torch.Tensor]]


def assert_same_weights(one: Weights, other: Weights) -> None:
    for tensors, others in zip(one, other, strict=True):
        assert tensors.keys() == others.keys()
        for name, tensor in tensors.items():
            assert torch.equal(tensor, others[name]), name


def killed_and_resumed(
    fresh: Callable[[Path | None], TrainingLoop], folder: Path, killed_after: int
) -> tuple[TrainingLoop, TrainingLoop]:
    """A whole run, and an equal run that was killed after an epoch and went on; `fresh` begins a run whose
    state is kept in a folder or nowhere.
    """
    whole = fresh(None)
    curve = [(epoch.losses, epoch.scores, epoch.kept) for epoch in whole.epochs()]
    for epoch in fresh(folder).epochs():
        if epoch.number == killed_after:
            break
    torch.manual_seed(99)
    resumed = fresh(folder)
    assert [(epoch.losses, epoch.scores, epoch.kept) for epoch in resumed.epochs()] == curve[killed_after:]
    assert [epoch.kept for epoch in resumed.curve] == [epoch.kept for epoch in whole.curve]
    assert_same_weights(whole.trainee.weights(), resumed.trainee.weights())
    assert_same_weights(whole.trainee.kept_weights(), resumed.trainee.kept_weights())
    assert_same_weights(whole.kept or [], resumed.kept or [])
    return whole, resumed
