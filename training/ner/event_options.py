"""The configuration of the event head in a release: its weight, and the scores at each threshold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from models.ner.model import NerModel
from models.types import CODED_LABELS
from training.evaluation.alarms import DEFINITIONS, Post, alarm_curve
from training.teaching.readers import gold_texts

#: Weights of the log-odds of an event.
WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.5)


def event_options(model: NerModel, scores: Callable[[NerModel], Mapping[str, float]]) -> dict[str, Any]:
    """The entries of a release's configuration: the weight with the best mean of the validation scores, and
    the curve of alarms over the held-out posts of the teaching corpus, where there are any.
    """
    tried = {}
    for weight in WEIGHTS:
        model.decoding.event_weight = weight
        by_corpus = scores(model)
        tried[str(weight)] = round(sum(by_corpus.values()) / len(by_corpus), 4)
    best = max(WEIGHTS, key=lambda weight: tried[str(weight)])
    model.decoding.event_weight = best
    options: dict[str, Any] = {"event_weight": best, "event_below": 0.0, "event_weights_tried": tried}
    return options | held_out_alarms(model)


def held_out_alarms(model: NerModel) -> dict[str, Any]:
    """The entry of a configuration with the curve of alarms; nothing where there is no event head, or no
    held-out post.
    """
    posts = held_out_posts()
    if not posts or model.event_head is None:
        return {}
    return {"alarms": alarm_curve(model, posts) | {"definitions": DEFINITIONS}}


def held_out_posts() -> list[Post]:
    """The posts of the teaching corpus that are never trained on."""
    posts = []
    for text in gold_texts("posts", "held_out"):
        events = tuple((m.start, m.end) for m in text.mentions if m.label in CODED_LABELS)
        posts.append(Post(text.text, events, bool(events)))
    return posts
