"""Statistics of pairs of drug and term."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from streams.records.reviews import SignalState


@dataclass(frozen=True, slots=True)
class Limits:
    """An estimate with the limits of its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowStatistics:
    """Statistics of a pair of drug and term over the reports of a window; see docs/results/signals.md."""

    n: int
    """Unique reports with both, or all reports where these were counted."""
    expected: float
    prr: Limits
    chi_square: float
    chi_square_yates: float
    ror: Limits
    ic: Limits
    ebgm: Limits
    """EBGM with EB05 and EB95."""
    criteria: tuple[str, ...]
    """Names of the criteria that are met."""
    ebgm_prior: Literal["fitted", "published"] | None = None
    """Whether the prior of EBGM comes from the pairs of the window or, where they are too few for that, from
    the paper; None: not stated.
    """
    all_reports: int | None = None
    """Reports with both, and how many of these are left after duplicates; None: not stated."""
    unique_reports: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchState:
    """The sequential test of a pair over the last weeks."""

    weeks: tuple[str, ...]
    n: tuple[int, ...]
    expected: tuple[float, ...]
    ratio: float
    """Log likelihood ratio of all weeks together."""
    critical: float
    signalled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A pair at the end of each of the last weeks: all unique reports up to then, and their lower limits. The
    last week ends at the computation; earlier versions have calendar weeks.
    """

    weeks: tuple[str, ...]
    """The days on which they begin."""
    n: tuple[int, ...]
    ic025: tuple[float, ...]
    eb05: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """Disproportionality of a drug and a term. It is no evidence that the drug causes the event."""

    drug: str
    term: str
    level: Literal["pt", "soc"]
    computed_at: datetime
    windows: dict[str, WindowStatistics]
    """By the name of the window: all, 90d, 7d; one without a report of the pair is left out."""
    watch: WatchState | None = None
    caveat: str = ""
    known_use: bool = False
    """The drug is taken for the term: people who take it have it, so that many reports are expected."""
    state: SignalState | None = None
    """As people decided and new reports opened it again; null where nobody has decided."""
    history: History | None = None

    @property
    def key(self) -> str:
        """Of the message. A bar in a name is escaped, so that no two pairs have one key."""
        return f"{_escaped(self.drug)}|{_escaped(self.term)}"


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace("|", "\\|")
