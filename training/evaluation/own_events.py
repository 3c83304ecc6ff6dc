"""Risk and coverage of the status head: how many of the writer's events stay without a flag, and how many of
the events without a flag are no event of the writer's, if those are flagged that the head is less sure of.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from models.assertion.flags import SURE, asserted
from models.assertion.triggers import assertion
from models.ner.model import NerModel
from models.ner.tagging import Reading
from models.types import CODED_LABELS, OWN, Assertion, Mention
from training.evaluation.alarms import Post, overlaps

#: Thresholds of the curve on the probability that an effect is the writer's own event.
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
DEFINITIONS = {
    "threshold": "the probability of an event of the writer's below which an effect counts as flagged; "
    "withdrawals named as such have none and are flagged by the rules alone",
    "coverage": "share of the writer's events of gold that share a character with an event without a flag",
    "risk": "share of the events without a flag that share a character with no event of the writer's",
    "unflagged": "number of events without a flag",
    "head": "flags by the status head alone",
    "head and rules": "flags as the stage sets them: the rules may find another experiencer beside the head",
    "rules alone": "baseline: what the tagger marks as an effect, without names that are not tagged, flagged "
    "by the rules alone",
    "no flags": "baseline: the same effects, none flagged",
}
#: Whether an effect in a text has no flag.
Unflagged = Callable[[str, Mention], bool]


def own_event_curve(model: NerModel, posts: Sequence[Post], reading: Reading) -> dict[str, Any]:
    """The shares of DEFINITIONS, for each threshold with and without the rules beside the head, and for both
    baselines. `reading`: that of the posts by the model.
    """
    below = model.decoding.event_below
    found = model.mentions_of(reading, below)
    curve = [
        {"threshold": threshold}
        | {
            name: shares(posts, found, _from(threshold, unflagged))
            for name, unflagged in (("head", by_head), ("head and rules", by_head_and_rules))
        }
        for threshold in THRESHOLDS
    ]
    plain = copy.copy(model)
    plain.status_head = None
    effects = plain.mentions_of(reading, below)
    baselines = {
        "rules alone": shares(posts, effects, by_rules),
        "no flags": shares(posts, effects, lambda text, mention: True),
    }
    events = sum(len(p.events) for p in posts)
    return {"posts": len(posts), "events": events, "curve": curve, "baselines": baselines}


def shares(
    posts: Sequence[Post], found: Sequence[Sequence[Mention]], unflagged: Unflagged
) -> dict[str, float | int]:
    """Coverage, risk and the number of the events among `found` that `unflagged` names."""
    covered = right = kept = 0
    for post, mentions in zip(posts, found, strict=True):
        own = [(m.start, m.end) for m in mentions if m.label in CODED_LABELS and unflagged(post.text, m)]
        covered += sum(overlaps(event, own) for event in post.events)
        right += sum(overlaps(one, post.events) for one in own)
        kept += len(own)
    events = sum(len(p.events) for p in posts)
    return {
        "coverage": round(covered / max(1, events), 4),
        "risk": round((kept - right) / max(1, kept), 4),
        "unflagged": kept,
    }


def by_head(text: str, mention: Mention) -> bool:
    """The status head alone; what it has not judged is flagged by the rules."""
    return mention.status == OWN if mention.status else by_rules(text, mention)


def by_head_and_rules(text: str, mention: Mention, sure: float = SURE) -> bool:
    """As the stage sets flags; `sure` as in `asserted`."""
    return asserted(text, mention, sure=sure) == Assertion()


def by_rules(text: str, mention: Mention) -> bool:
    """The rules alone."""
    return assertion(text, mention.start, mention.end) == Assertion()


def _from(threshold: float, unflagged: Unflagged) -> Unflagged:
    def is_sure(text: str, mention: Mention) -> bool:
        score = mention.status_score
        return (score is None or score >= threshold) and unflagged(text, mention)

    return is_sure
