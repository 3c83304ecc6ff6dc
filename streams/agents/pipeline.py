"""The flow: all stages with their topics, and the functions of those stages that have no rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from models import language
from models.types import Case
from streams import metrics
from streams.agents import ner, normalization, second_reading
from streams.records import CodedReport, ExpandedReport, Report, Summary, TaggedReport, extend
from streams.stage import Stage
from streams.topics import (
    EVENTS,
    EXPANDED,
    MENTIONS,
    POSTS,
    QUESTIONS,
    SENTENCES,
    SUMMARIES,
    TAGGED,
    Topic,
    TopicsError,
)


def expand(model: Any, reports: Sequence[Report]) -> list[ExpandedReport]:
    """Each report with the long forms of its acronyms, in order; the text is not changed. An expansion with
    candidates is an undecided one.
    """
    return [
        extend(
            ExpandedReport,
            report,
            expansions=tuple(e for e in expansions if not e.candidates),
            undecided=tuple(e for e in expansions if e.candidates),
        )
        for report, expansions in zip(reports, model.predict([r.text for r in reports]), strict=True)
    ]


def relate(model: Any, reports: Sequence[TaggedReport]) -> list[TaggedReport]:
    """Each sentence with the relations between its drugs and its effects, in order; `head` and `tail` of a
    relation are positions in the mentions.
    """
    related = model.predict([Case(r.text, r.mentions) for r in reports])
    return [replace(r, relations=tuple(found)) for r, found in zip(reports, related, strict=True)]


def summarize(model: Any, reports: Sequence[Report]) -> list[Summary]:
    """Each question with its short one, in order."""
    questions = model.predict([r.text for r in reports])
    return [extend(Summary, r, summary=q) for r, q in zip(reports, questions, strict=True)]


def _count_mentions(outputs: Sequence[TaggedReport]) -> None:
    """Adds the mentions of a batch to the counter, by label."""
    for mention in (m for output in outputs for m in output.mentions):
        metrics.MENTIONS.labels("ner", mention.label).inc()


def _count_events(outputs: Sequence[CodedReport]) -> None:
    """Adds the events of a batch to the counter, by outcome, and the reports in languages without events."""
    for output in outputs:
        if not output.was_read:
            metrics.EVENTS.labels("unsupported_language").inc()
        for event in output.events:
            metrics.EVENTS.labels("nil" if event.nil else "coded").inc()


STAGES: tuple[Stage[Any, Any], ...] = (
    Stage(
        "ner",
        POSTS,
        MENTIONS,
        ner.predict,
        _count_mentions,
        language.load,
        (QUESTIONS,),
        ((EXPANDED, TAGGED),),
        second_reading.judged,
        long_forms=True,
    ),
    Stage("acronym", SENTENCES, EXPANDED, expand),
    Stage("relation", TAGGED, MENTIONS, relate, long_forms=True),
    Stage("normalization", MENTIONS, EVENTS, normalization.predict, _count_events),
    Stage("summarization", QUESTIONS, SUMMARIES, summarize),
)

#: Input topic to the topics of its final records, first the one that is meant where none is named.
FINAL_TOPICS: dict[str, tuple[Topic[Any], ...]] = {
    POSTS.name: (EVENTS,),
    SENTENCES.name: (EVENTS,),
    QUESTIONS.name: (SUMMARIES, EVENTS),
}


def stage_named(name: str) -> Stage[Any, Any]:
    """The stage of that name; raises KeyError with the known names."""
    for stage in STAGES:
        if stage.name == name:
            return stage
    raise KeyError(f"no stage {name!r}; the stages are {', '.join(s.name for s in STAGES)}")


def stages_from(topic: str, results: str | None = None) -> tuple[Stage[Any, Any], ...]:
    """The stages that records of a topic pass until they are records of the topic `results`, in order.

    Raises TopicsError where no stage reads the topic, or none of these records ever come to `results`.
    """
    ways = {way[-1].sink.name: way for way in _ways(topic)}
    if not ways:
        read = dict.fromkeys(source.name for stage in STAGES for source in stage.sources)
        raise TopicsError(f"no stage reads {topic}; there are {', '.join(read)}")
    results = results or FINAL_TOPICS.get(topic, (EVENTS,))[0].name
    if results not in ways:
        raise TopicsError(f"records of {topic} give no {results}, but {', '.join(ways)}")
    return ways[results]


def final_of(stage: Stage[Any, Any]) -> Topic[Any]:
    """The topic of the final records that are made of the outputs of a stage."""
    return next((way[-1].sink for way in _ways(stage.sink.name)), stage.sink)


def _ways(topic: str) -> Iterator[tuple[Stage[Any, Any], ...]]:
    """Each way of records of a topic through the stages to their end."""
    for stage in STAGES:
        if any(source.name == topic for source in stage.sources):
            for way in tuple(_ways(stage.sink_of(topic).name)) or ((),):
                yield (stage, *way)
