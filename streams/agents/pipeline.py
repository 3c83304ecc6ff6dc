"""The flow: all stages with their source and sink topics."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from models import language
from streams import metrics
from streams.agents import acronym, ner, normalization, relation, summarization
from streams.records import CodedReport, TaggedReport
from streams.stage import Stage
from streams.topics import (
    EVENTS,
    EXPANDED,
    MENTIONS,
    POSTS,
    QUESTIONS,
    SENTENCES,
    SUMMARIES,
    Topic,
    TopicsError,
)


def _count_mentions(stage: str, outputs: Sequence[TaggedReport]) -> None:
    """Adds the mentions of a batch to the counter, by label."""
    for mention in (m for output in outputs for m in output.mentions):
        metrics.MENTIONS.labels(stage, mention.label).inc()


def _count_events(outputs: Sequence[CodedReport]) -> None:
    """Adds the events of a batch to the counter, by outcome, and the reports in languages without events."""
    for output in outputs:
        if not output.was_read:
            metrics.EVENTS.labels("unsupported_language").inc()
        for event in output.events:
            metrics.EVENTS.labels("nil" if event.nil else "coded").inc()


STAGES: tuple[Stage[Any, Any], ...] = (
    Stage("ner", POSTS, MENTIONS, ner.predict, partial(_count_mentions, "ner"), language.load),
    Stage("acronym", SENTENCES, EXPANDED, acronym.predict),
    Stage("relation", EXPANDED, MENTIONS, relation.predict, partial(_count_mentions, "relation")),
    Stage("normalization", MENTIONS, EVENTS, normalization.predict, _count_events),
    Stage("summarization", QUESTIONS, SUMMARIES, summarization.predict),
)

#: Input topic to the topic of its final records.
FINAL_TOPICS: dict[str, Topic[Any]] = {POSTS.name: EVENTS, SENTENCES.name: EVENTS, QUESTIONS.name: SUMMARIES}


def stage_named(name: str) -> Stage[Any, Any]:
    """The stage of that name; raises KeyError with the known names."""
    for stage in STAGES:
        if stage.name == name:
            return stage
    raise KeyError(f"no stage {name!r}; the stages are {', '.join(s.name for s in STAGES)}")


def stages_from(topic: str) -> tuple[Stage[Any, Any], ...]:
    """The stages that records of a topic pass, in order; raises TopicsError where no stage reads it."""
    by_source = {stage.source.name: stage for stage in STAGES}
    passed: list[Stage[Any, Any]] = []
    while topic in by_source:
        passed.append(by_source[topic])
        topic = passed[-1].sink.name
    if not passed:
        raise TopicsError(f"no stage reads {topic}; there are {', '.join(by_source)}")
    return tuple(passed)
