"""The flow, in one tuple."""

from __future__ import annotations

from typing import Any

from streams.agents import acronym, ner, normalization, relation, summarization
from streams.stage import Stage
from streams.topics import EVENTS, EXPANDED, MENTIONS, POSTS, QUESTIONS, SENTENCES, SUMMARIES, Topic

STAGES: tuple[Stage[Any, Any], ...] = (
    Stage("ner", POSTS, MENTIONS, ner.predict, ner.count),
    Stage("acronym", SENTENCES, EXPANDED, acronym.predict),
    Stage("relation", EXPANDED, MENTIONS, relation.predict, relation.count),
    Stage("normalization", MENTIONS, EVENTS, normalization.predict, normalization.count),
    Stage("summarization", QUESTIONS, SUMMARIES, summarization.predict),
)

#: Where a record that entered by an input topic comes out.
ENDS: dict[str, Topic[Any]] = {POSTS.name: EVENTS, SENTENCES.name: EVENTS, QUESTIONS.name: SUMMARIES}


def stage_named(name: str) -> Stage[Any, Any]:
    """Raises KeyError with the names there are."""
    for stage in STAGES:
        if stage.name == name:
            return stage
    raise KeyError(f"no stage {name!r}; there are {', '.join(s.name for s in STAGES)}")
