"""The second reading of the stage `ner`: a judge decides what the effects of a text are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from models.case_fields.fields import case_fields
from models.ner.named_drugs import with_named_drugs
from models.types import Case, Mention
from streams.records import TaggedReport


class Judge(Protocol):
    """A model that reads texts with their mentions."""

    def predict(self, batch: Sequence[Case]) -> Sequence[Sequence[Mention]]: ...


def judged(model: Judge, reports: Sequence[TaggedReport]) -> list[TaggedReport]:
    """The reports with their mentions as the judge decides; it knows the drugs and the indication that their
    sources state. Those in a language that the tagger does not read stay as they are, and so do clinical
    sentences of which no drug is stated: the judge has learned reports, no sentences of publications.
    """
    decided = iter(model.predict([Case(r.text, r.mentions, r.stated) for r in reports if _is_read(r)]))
    return [_reread(r, with_named_drugs(r.text, next(decided))) if _is_read(r) else r for r in reports]


def _is_read(report: TaggedReport) -> bool:
    return report.was_read and not (report.is_clinical and not report.stated_drugs)


def _reread(report: TaggedReport, mentions: Sequence[Mention]) -> TaggedReport:
    """The report with its mentions as they were decided, on which what it states of a case depends."""
    stated = case_fields(report.text, mentions, clinical=report.is_clinical)
    return replace(report, mentions=tuple(mentions), case_fields=stated)
