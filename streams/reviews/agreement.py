"""Two readings of one event: whether they agree, and Cohen's kappa over many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace

from streams.records import FIRST, SECOND, Review, ReviewedEvent

REJECTED = "rejected"


@dataclass(slots=True)
class Readings:
    """The decisions on one event that are valid."""

    original: ReviewedEvent
    """The event as it was before the first decision that is valid."""
    first: Review | None = None
    second: Review | None = None
    """By somebody who has not seen the first one."""
    resolution: Review | None = None
    """Where the two differ."""

    def take(self, review: Review) -> None:
        """The next decision; an undo takes back the one of its reading."""
        valid = None if review.action == "undo" else review
        if review.reading == FIRST:
            self.first, self.original = valid, valid.before if valid else self.original
        elif review.reading == SECOND:
            self.second = valid
        else:
            self.resolution = valid

    @property
    def is_disputed(self) -> bool:
        """Whether two readings differ and nobody has resolved it."""
        if self.first is None or self.second is None or self.resolution is not None:
            return False
        return not agree(self.first.after, self.second.after)


def agree(one: ReviewedEvent, other: ReviewedEvent) -> bool:
    """Whether two readings say the same: both reject, or both keep the same code, flags, span and drugs."""
    if REJECTED in {_event(one), _event(other)}:
        return _event(one) == _event(other)
    return _compared_fields(one) == _compared_fields(other)


def _compared_fields(state: ReviewedEvent) -> ReviewedEvent:
    drugs = None if state.drugs is None else tuple(sorted(state.drugs))
    return replace(state, review=None, drugs=drugs)


@dataclass(frozen=True, slots=True)
class Agreement:
    """Of the readings of `n` events, for one aspect with nominal values."""

    n: int
    agreed: float
    """Share of equal answers."""
    kappa: float | None
    """(agreed - chance) / (1 - chance), Cohen 1960, chance from both margins; null where that is 1."""


def kappa(answers: Sequence[tuple[str, str]]) -> Agreement:
    """Of pairs of answers, those of the first and of the second readers; at least one pair."""
    n = len(answers)
    agreed = sum(one == other for one, other in answers) / n
    first, second = Counter(one for one, _ in answers), Counter(other for _, other in answers)
    chance = sum(first[answer] * second[answer] for answer in first) / n**2
    beyond = None if chance == 1 else round((agreed - chance) / (1 - chance), 4)
    return Agreement(n, round(agreed, 4), beyond)


def _event(state: ReviewedEvent) -> str:
    return REJECTED if state.review == "reject" else "kept"


def _code(state: ReviewedEvent) -> str:
    return REJECTED if state.review == "reject" else state.pt or "NIL"


def _status(state: ReviewedEvent) -> str:
    names = ("negated", "hypothetical", "other_experiencer")
    flags = [name for name, is_set in asdict(state).items() if name in names and is_set]
    return REJECTED if state.review == "reject" else " ".join(flags) or "affirmed"


ASPECTS: dict[str, Callable[[ReviewedEvent], str]] = {"event": _event, "code": _code, "status": _status}


def agreement(readings: Iterable[Readings]) -> dict[str, Agreement]:
    """For each of ASPECTS the agreement of all events that were read twice; empty where there is none."""
    twice = [(r.first.after, r.second.after) for r in readings if r.first and r.second]
    if not twice:
        return {}
    return {
        name: kappa([(answer(one), answer(other)) for one, other in twice])
        for name, answer in ASPECTS.items()
    }
