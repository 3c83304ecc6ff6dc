"""The state of a run after its last whole epoch, so that a killed run goes on where it was.

What is stored is read back without unpickling code, and only by a run with the same settings.
"""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch


class CheckpointError(Exception):
    """A run folder that belongs to another run; one line."""


class Checkpoint:
    """`folder` None: nothing is kept, and nothing is found."""

    def __init__(self, folder: Path | None, settings: Mapping[str, Any]) -> None:
        """`settings`: plain values that make a run what it is."""
        self._path = folder / "checkpoint.pt" if folder else None
        self._settings = dict(settings)

    def load(self) -> dict[str, Any] | None:
        """What was saved last, with the random numbers put back; raises CheckpointError."""
        if self._path is None or not self._path.exists():
            return None
        stored: dict[str, Any] = torch.load(self._path, weights_only=True)
        if stored["settings"] != self._settings:
            raise CheckpointError(f"{self._path} is of a run with other settings")
        torch.set_rng_state(stored["torch"])
        return dict(stored["state"])

    def save(self, state: Mapping[str, Any]) -> None:
        """Tensors and plain values; written aside and synced, so that a power cut leaves the last one or this
        one.
        """
        if self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        aside = self._path.with_suffix(".new")
        with aside.open("wb") as file:
            torch.save(
                {"settings": self._settings, "torch": torch.get_rng_state(), "state": dict(state)}, file
            )
            file.flush()
            os.fsync(file.fileno())
        aside.rename(self._path)


def random_state(rng: random.Random) -> list[Any]:
    """A generator's state in plain values."""
    version, numbers, gauss = rng.getstate()
    return [version, list(numbers), gauss]


def set_random_state(rng: random.Random, state: list[Any]) -> None:
    version, numbers, gauss = state
    rng.setstate((version, tuple(numbers), gauss))
