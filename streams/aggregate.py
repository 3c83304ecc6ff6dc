"""Removes the text from the final record of a report whose source forbids keeping it."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from models.types import ShortQuestion
from streams.records import CodedEvent, CodedReport, Report, Summary

R = TypeVar("R", bound=Report)


def without_text(record: R) -> R:
    """A final record with `aggregate_only` without its text, all that quotes it, its author and its address;
    any other record unchanged. Codes, scores, labels and spans stay.
    """
    if not record.aggregate_only or not isinstance(record, CodedReport | Summary):
        return record
    bare = replace(record, text="", masked=(), permalink=None, author=None, meta={})
    if isinstance(bare, Summary):
        # Of the question neither its words nor the name that was inserted, which is the writer's too.
        return replace(bare, summary=ShortQuestion("", bare.summary.method, bare.summary.score))
    known = {m.generic for m in bare.mentions}
    return replace(
        bare,
        expansions=(),
        undecided=(),
        mentions=tuple(replace(m, text="") for m in bare.mentions),
        events=tuple(_with_known_drugs(event, known) for event in bare.events),
    )


def _with_known_drugs(event: CodedEvent, known: set[str | None]) -> CodedEvent:
    """The event without suspects that are words of the text: only a lexicon and the source name drugs."""
    if event.drug_evidence == "report":
        return event
    return replace(event, drugs=tuple(drug for drug in event.drugs if drug in known))
