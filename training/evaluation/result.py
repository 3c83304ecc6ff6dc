"""What a measurement of any task gives: counts of each record, the same counts of a trivial method, and the
scores that follow from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from models.scores import Counts, Measure


class EvaluationError(Exception):
    """A measurement that cannot be made; the message is always one line."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


class Part(NamedTuple):
    """The records that a score is over, where it is not over all."""

    data: str
    records: int


@dataclass(frozen=True, slots=True)
class Measured:
    counts: Counts
    """(records, columns): what the model did"""
    baseline: Counts
    """the same columns of a trivial method on the same records"""
    measures: tuple[Measure, ...]
    baseline_definitions: Mapping[str, str]
    """of the scores that have a baseline"""
    seconds: float
    """of prediction alone"""
    parts: Mapping[str, Part] = field(default_factory=dict)
