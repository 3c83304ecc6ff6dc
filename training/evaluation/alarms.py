"""Alarms: how many posts with an adverse event of the writer's get one, and how many posts without one do.

An alarm is a mention labelled ADE or WITHDRAWAL without a flag: it is not negated, not hypothetical and
not of another person.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

from models import terminology
from models.assertion.flags import asserted
from models.lexicon import NameLexicon
from models.ner.model import NerModel
from models.ner.tagging import Reading
from models.types import ADE, CODED_LABELS, Assertion, Mention, Stated

#: Thresholds of the curve on the probability that a sentence reports an event.
THRESHOLDS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
DEFINITIONS = {
    "auc": "area under the ROC curve of the probability of an event, the highest of a post's sentences, of "
    "posts with an event of the writer's against posts without; chance .5",
    "threshold": "the probability of an event below which a sentence has no alarm but for withdrawals named "
    "as such",
    "alarmed": "share of posts with an event of the writer's that get an alarm",
    "hit": "the same, the alarm sharing a character with a gold event",
    "false": "share of posts without an event of the writer's that get an alarm",
    "precision": "share of the alarms that share a character with a gold event",
    "recall": "share of the gold events that share a character with an alarm",
    "f1": "of posts with an event of the writer's, where a post with an alarm counts as found",
    "pipeline": "the same of the events that the whole pipeline reports as the writer's, with what is "
    "stated beside a text",
    "baseline": "the same shares where every name of the terminology in a post is a mention labelled ADE",
}


NOTHING = Stated()


@dataclass(frozen=True, slots=True)
class Post:
    """A post, the spans of its writer's events, and whether it has any."""

    text: str
    events: tuple[tuple[int, int], ...]
    own_event: bool
    stated: Stated = NOTHING
    """what its source states beside it"""


def alarms(text: str, mentions: Sequence[Mention], stated: Stated = NOTHING) -> list[tuple[int, int]]:
    """The spans of the mentions that are alarms, with what is stated beside the text."""
    effects = [m for m in mentions if m.label in CODED_LABELS]
    states = [asserted(text, m, of_patient=bool(stated.drugs)) for m in effects]
    return [(m.start, m.end) for m, state in zip(effects, states, strict=True) if state == Assertion()]


def overlaps(span: tuple[int, int], others: Iterable[tuple[int, int]]) -> bool:
    """Whether a span shares a character with one of the others."""
    return any(span[0] < end and start < span[1] for start, end in others)


@cache
def _terms() -> NameLexicon:
    return NameLexicon.of(t.llt for t in terminology.load())


def named_terms(text: str) -> list[Mention]:
    """The names of the bundled terminology in a text as mentions labelled ADE; of several names that begin at
    one word the longest.
    """
    spans = [span for span, _ in _terms().find(text)]
    return [Mention(s.start, s.end, text[s.start : s.end], ADE, 1.0) for s in spans]


def alarm_curve(model: NerModel, posts: Sequence[Post]) -> dict[str, Any]:
    """The scores of DEFINITIONS: AUC, the shares at each threshold, and the baseline. A tagger without an
    event head has no AUC and only the shares at threshold 0.
    """
    texts, has_event = [p.text for p in posts], [p.own_event for p in posts]
    reading = model.read(texts)
    thresholds = THRESHOLDS if model.event_head else THRESHOLDS[:1]
    rows = [_row(t, posts, spans) for t, spans in _alarms_by_threshold(model, reading, thresholds)]
    named = [alarms(text, named_terms(text)) for text in texts]
    baseline = _row(0.0, posts, named)
    result: dict[str, Any] = {
        "posts": len(posts), "own_event": sum(has_event), "curve": rows, "baseline": baseline,
    }  # fmt: skip
    if model.event_head and len(set(has_event)) > 1:
        from sklearn.metrics import (  # type: ignore[import-untyped]  # noqa: PLC0415  two seconds to import
            roc_auc_score,
        )

        probabilities = [max(events, default=0.0) for events in reading.events()]
        result["auc"] = round(float(roc_auc_score(has_event, probabilities)), 4)
    return result


def event_scores(model: NerModel, posts: Sequence[Post]) -> dict[str, dict[str, float]]:
    """Precision and recall of events (0 where no post has a gold span) and F1 of posts, of the tagger and of
    the baseline.
    """
    texts = [p.text for p in posts]
    by_method = {"tagger": model.predict(texts), "baseline": [named_terms(t) for t in texts]}
    return {
        name: event_row(posts, [alarms(text, tagged) for text, tagged in zip(texts, mentions, strict=True)])
        for name, mentions in by_method.items()
    }


def event_row(posts: Sequence[Post], alarmed: Sequence[Sequence[tuple[int, int]]]) -> dict[str, float]:
    """Precision and recall of the spans of each post, F1 of posts, and the share of posts with an event that
    have a right one (`hit`) and of those without that have any (`false`).
    """
    pairs = list(zip(posts, alarmed, strict=True))
    right = sum(overlaps(span, post.events) for post, spans in pairs for span in spans)
    covered = sum(overlaps(event, spans) for post, spans in pairs for event in post.events)
    both = sum(post.own_event and bool(spans) for post, spans in pairs)
    either = sum(post.own_event + bool(spans) for post, spans in pairs)
    return {
        "precision": round(right / max(1, sum(map(len, alarmed))), 4),
        "recall": round(covered / max(1, sum(len(p.events) for p in posts)), 4),
        "f1": round(2 * both / max(1, either), 4),
    } | {name: value for name, value in _row(0.0, posts, alarmed).items() if name in ("hit", "false")}


def _alarms_by_threshold(
    model: NerModel, reading: Reading, thresholds: Sequence[float]
) -> Iterator[tuple[float, list[list[tuple[int, int]]]]]:
    """Each of the rising thresholds with the alarms of each text, as the stage gives them with it."""
    events = reading.events()
    by_text: list[list[tuple[int, int]]] = [[] for _ in reading.texts]
    for last, threshold in pairwise((-1.0, *thresholds)):
        # The mentions of the others are the same as with the threshold before.
        changed = {
            i
            for i, probabilities in enumerate(events)
            if last < 0 or any(last <= e < threshold for e in probabilities)
        }
        all_mentions = model.mentions_of(reading.of(changed), threshold)
        for i in changed:
            by_text[i] = alarms(reading.texts[i], all_mentions[i])
        yield threshold, list(by_text)


def _row(
    threshold: float, posts: Sequence[Post], alarmed: Sequence[Sequence[tuple[int, int]]]
) -> dict[str, float]:
    counts = {"alarmed": 0, "hit": 0, "false": 0}
    for post, spans in zip(posts, alarmed, strict=True):
        if not spans:
            continue
        counts["alarmed" if post.own_event else "false"] += 1
        counts["hit"] += post.own_event and any(overlaps(span, post.events) for span in spans)
    with_event = sum(p.own_event for p in posts)
    of = {"alarmed": with_event, "hit": with_event, "false": len(posts) - with_event}
    return {"threshold": threshold} | {name: round(n / max(1, of[name]), 4) for name, n in counts.items()}
