"""Faults that a player makes at random."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

Fault = Literal[
    "cut", "mid_line", "malformed", "silence", "429", "503", "duplicate", "out_of_order", "clock", "large"
]
FAULTS: tuple[Fault, ...] = (
    "cut", "mid_line", "malformed", "silence", "429", "503", "duplicate", "out_of_order", "clock", "large"
)  # fmt: skip
LARGE = 2 << 20


@dataclass(slots=True)
class Faults:
    """Draws `count` faults, one at about every `every`th message, then none."""

    seed: int
    count: int = 0
    every: float = 10.0
    kinds: Sequence[Fault] = FAULTS
    silence: float = 0.5
    """Seconds for which nothing comes; above the keep-alive of the source."""
    made: Counter[Fault] = field(default_factory=Counter)
    _random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def draw(self) -> Fault | None:
        if sum(self.made.values()) >= self.count or self._random.random() > 1 / self.every:
            return None
        fault = self._random.choice(self.kinds)
        self.made[fault] += 1
        return fault
