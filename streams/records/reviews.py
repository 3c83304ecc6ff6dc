"""Decisions of reviewers, on events and on signals."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Annotated, Literal

from pydantic import Field, FiniteFloat

from streams.records.reports import Id, Number, Time


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
    start: Number | None = None
    """Of the corrected span; null, like `end`, for the span that the models found."""
    end: Number | None = None
    drugs: Annotated[tuple[str, ...], Field(fail_fast=True)] | None = None
    """Corrected suspected drugs, by their nonproprietary names; null for those that the models found."""


Action = Literal["accept", "reject", "correct", "undo"]
#: `reading` of a review: the decision, a second reading by somebody else who has not seen the first, which
#: decides nothing, and the decision where the two differ.
Reading = Literal[1, 2, 3]
FIRST: Reading = 1
SECOND: Reading = 2
RESOLUTION: Reading = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """A reviewer's decision on one event. The decisions are a chain: each names the hash of the one before,
    so a change or a removal of an earlier one shows. It has no words of the report.
    """

    sequence: Number
    """0 for the first decision, then one more for each."""
    report_id: Id
    start: Number
    end: Annotated[Number, Field(gt=0)]
    fingerprint: str
    """Of the text that was reviewed; a decision says nothing about another text of the report."""
    reviewer: str
    decided_at: Time
    action: Action
    before: ReviewedEvent
    after: ReviewedEvent
    reason: str = ""
    previous: str = ""
    """Hash of the decision before; empty for the first one."""
    hash: str = ""
    """SHA-256 of the record with this field empty, in hexadecimal; see `streams.reviews.chain`."""
    reading: Reading = FIRST


SignalState = Literal["new", "under review", "confirmed", "refuted", "monitored", "closed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalStatus:
    """Where a signal stands, who has it, and until when something is to be done."""

    state: SignalState = "new"
    owner: str = ""
    due: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalDecision:
    """A decision on a signal, in the same chain as those on events. It has the numbers that were seen, by
    which a later computation knows what is new since then.
    """

    sequence: Number
    drug: str
    term: str
    """Preferred term."""
    reviewer: str
    """Empty where new reports opened an ended signal again, for the `reason`."""
    decided_at: Time
    before: SignalStatus
    after: SignalStatus
    reason: str = ""
    comment: str = ""
    reports: Number = 0
    """Unique reports of the pair, over all time like the limits."""
    ic025: FiniteFloat | None = None
    eb05: FiniteFloat | None = None
    """Null, like `ic025`, for a pair with too few reports to be listed."""
    previous: str = ""
    hash: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """Who has a report from now on, in the same chain as the decisions."""

    sequence: Number
    report_id: Id
    reviewer: str
    """Who assigned it."""
    decided_at: Time
    before: str
    owner: str
    """Empty, like `before`, where nobody has it."""
    previous: str = ""
    hash: str = ""


Decision = Review | SignalDecision | Assignment


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A request for a lease: that a session of the review page alone may decide an event for some time."""

    report_id: Id
    start: Number
    end: Annotated[Number, Field(gt=0)]
    fingerprint: str
    """Of the text, as in a review."""
    holder: str
    """The session of a browser, which is random and names nobody."""
    seconds: Annotated[float, Field(ge=0)]
    """From the time of the message; 0 gives the event back."""
