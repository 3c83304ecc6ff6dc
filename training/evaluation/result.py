"""The result of a task's measure: counts of each record, those of a trivial baseline, and scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from models.scores import Counts, Measure
from training.common import UserError


class EvaluationError(UserError):
    """An evaluation is not possible; the message is always one line."""


class Part(NamedTuple):
    """The records that a score is computed over, where these are not all records."""

    data: str
    records: int


@dataclass(frozen=True, slots=True)
class Result:
    """Counts of a model and of a baseline on the same records, and what is computed from them."""

    counts: Counts
    """(records, columns) of the model"""
    baseline: Counts
    """the same columns of the trivial baseline"""
    measures: tuple[Measure, ...]
    baseline_definitions: Mapping[str, str]
    """of the scores that have a baseline"""
    seconds: float
    """of prediction alone"""
    parts: Mapping[str, Part] = field(default_factory=dict)
