"""A finding of `pvstream check`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Grade = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, what was found, and what to do about it."""

    what: str
    grade: Grade
    found: str
    fix: str = ""
    """Empty where nothing is to be done."""
