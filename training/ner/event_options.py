"""What a release states of its heads: the weight of the event head, and the scores at each threshold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from models.ner.model import NerModel
from models.types import CODED_LABELS
from training.evaluation.alarms import DEFINITIONS as ALARMS
from training.evaluation.alarms import Post, alarm_curve
from training.evaluation.own_events import DEFINITIONS as OWN_EVENTS
from training.evaluation.own_events import own_event_curve
from training.teaching.readers import gold_texts

#: Weights of the log-odds of an event.
WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.5)


def event_options(model: NerModel, scores: Callable[[NerModel], Mapping[str, float]]) -> dict[str, Any]:
    """The entries of a release's configuration: the weight of the event head with the best mean of the
    validation scores, which the model has from then on.
    """
    tried = {}
    for weight in WEIGHTS:
        model.decoding.event_weight = weight
        by_corpus = scores(model)
        tried[str(weight)] = round(sum(by_corpus.values()) / len(by_corpus), 4)
    best = max(WEIGHTS, key=lambda weight: tried[str(weight)])
    model.decoding.event_weight = best
    return {"event_weight": best, "event_below": 0.0, "event_weights_tried": tried}


def held_out_curves(model: NerModel) -> dict[str, Any]:
    """The entries of a configuration with the curves over the held-out posts of the teaching corpus, where
    there are any: that of alarms for an event head, and that of risk and coverage for a status head.
    """
    posts = held_out_posts()
    if not posts or (model.event_head is None and model.status_head is None):
        return {}
    curves: dict[str, Any] = {}
    reading = model.read([p.text for p in posts])
    if model.event_head is not None:
        curves["alarms"] = alarm_curve(model, posts, reading) | {"definitions": ALARMS}
    if model.status_head is not None:
        curves["own_events"] = own_event_curve(model, posts, reading) | {"definitions": OWN_EVENTS}
    return curves


def held_out_posts() -> list[Post]:
    """The posts of the teaching corpus that are never trained on."""
    posts = []
    for text in gold_texts("posts", "held_out"):
        events = tuple((m.start, m.end) for m in text.mentions if m.label in CODED_LABELS)
        posts.append(Post(text.text, events, bool(events)))
    return posts
