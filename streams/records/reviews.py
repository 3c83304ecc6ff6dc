"""Decisions of reviewers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from streams.records.reports import Id


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewedEvent:
    """What an event is, before or after a decision; NIL has no llt, pt and soc."""

    llt: str | None
    pt: str | None
    soc: str | None
    negated: bool
    hypothetical: bool
    other_experiencer: bool
    serious: bool = False
    review: Literal["accept", "reject", "correct"] | None = None
    """The decision that is valid; null before the first one and after an undo of it."""


Action = Literal["accept", "reject", "correct", "undo"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """A reviewer's decision on one event. The decisions are a chain: each names the hash of the one before,
    so a change or a removal of an earlier one shows. It has no words of the report.
    """

    sequence: Annotated[int, Field(ge=0)]
    """0 for the first decision, then one more for each."""
    report_id: Id
    start: Annotated[int, Field(ge=0)]
    end: Annotated[int, Field(gt=0)]
    fingerprint: str
    """Of the text that was reviewed; a decision says nothing about another text of the report."""
    reviewer: str
    decided_at: datetime
    action: Action
    before: ReviewedEvent
    after: ReviewedEvent
    reason: str = ""
    previous: str = ""
    """Hash of the decision before; empty for the first one."""
    hash: str = ""
    """SHA-256 of the record with this field empty, in hexadecimal."""
