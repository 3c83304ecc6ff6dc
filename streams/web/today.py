"""A reviewer's day: how far it is, and the decisions that can be taken back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise, takewhile
from statistics import median

from streams.records import Review
from streams.reviews.log import Place, ReviewLog, place_of

#: Seconds between two decisions from which the reviewer did something else.
PAUSE = 600.0
#: Decisions within which those that were made together stand.
TOGETHER = 200


@dataclass(frozen=True, slots=True)
class Day:
    """The decisions of a day in UTC; an undo takes its decision out."""

    mine: dict[str, int]
    """Of the reviewer, by their kind."""
    all: int
    seconds: float | None
    """Median from one decision of the reviewer to the next, without pauses; None before the second."""


def day_of(log: ReviewLog, name: str, now: datetime) -> Day:
    """The day so far, of a reviewer and of all."""
    start = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    made = list(takewhile(lambda review: review.decided_at >= start, reversed(log.reviews)))[::-1]
    mine: Counter[str] = Counter()
    for review in made:
        if review.reviewer == name:
            taken_back = review.action == "undo"
            mine[str(review.before.review) if taken_back else review.action] += -1 if taken_back else 1
    times = sorted({review.decided_at for review in made if review.reviewer == name})
    steps = [(b - a).total_seconds() for a, b in pairwise(times)]
    worked = [seconds for seconds in steps if seconds < PAUSE]
    counted = sum(-1 if review.action == "undo" else 1 for review in made)
    return Day(dict(sorted((+mine).items())), max(0, counted), median(worked) if worked else None)


def last_step(log: ReviewLog, name: str) -> list[Review]:
    """The last decision of a reviewer that nothing has followed on the same event, with those that were made
    together with it, the last one first.
    """
    found: list[Review] = []
    for review in _standing(log, name):
        if found and (review.decided_at != found[0].decided_at):
            break
        found.append(review)
    return found


def is_standing(log: ReviewLog, review: Review) -> bool:
    """Whether nothing has followed a decision on its event."""
    return any(one is review for one in _standing(log, review.reviewer))


def _standing(log: ReviewLog, name: str) -> Iterator[Review]:
    """A reviewer's decisions that nothing has followed, the last one first."""
    seen: set[Place] = set()
    left = len(log.reviews)
    for review in reversed(log.reviews):
        where = place_of(review)
        if where not in seen and review.reviewer == name and review.action != "undo":
            left = min(left, TOGETHER)
            yield review
        seen.add(where)
        left -= 1
        if not left:
            return
