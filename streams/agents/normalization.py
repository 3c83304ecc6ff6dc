"""mentions -> events: codes each adverse event to the terminology, with its suspected drugs and assertion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from models.assertion.flags import asserted
from models.case_fields.fields import case_fields
from models.drugs.suspects import Suspects
from models.ner.stated_indication import KnownUses
from models.normalization.nil_rule import is_short_form_of_posts
from models.normalization.queries import query_of
from models.normalization.short_forms import usual_expansions, with_parts
from models.normalization.verbatims import is_verbatim, with_verbatims
from models.types import CODED_LABELS, DRUG, INDICATION, Assertion, Coding, Expansion, Mention, TaggedText
from streams import metrics
from streams.records import CodedEvent, CodedReport, TaggedReport, extend
from streams.topics import QUESTIONS


def predict(model: Any, reports: Sequence[TaggedReport]) -> list[CodedReport]:
    """One coded report for each report, in order.

    All mentions of the batch are coded in one call. Every event keeps its candidates, also a NIL one. An
    effect that is what the source states as the indication becomes a mention of that. A short text beside a
    stated drug is read as it stands, and of a list of short forms each part is a mention.
    """
    read = [(r, _effects(r)) for r in map(_in_parts, reports)]
    queries = [query_of(r.text, r.mentions[i], r.mentions, _meanings(r, i)) for r, own in read for i in own]
    codings = iter(model.predict(queries))
    if hasattr(model, "wordings"):
        for how, mentions in model.wordings.taken().items():
            metrics.WORDINGS.labels(how).inc(mentions)
    return [_coded(r, own, codings) for r, own in read]


def _meanings(report: TaggedReport, effect: int) -> Sequence[Expansion]:
    """The expansions with which an effect is read: those of the record and, where there is none in a mention
    of a post or a question, what its short forms usually mean.
    """
    start, end = report.mentions[effect].start, report.mentions[effect].end
    if report.is_clinical or any(start <= e.start < end for e in report.expansions):
        return report.expansions
    return usual_expansions(report.text, start, end)


def _in_parts(report: TaggedReport) -> TaggedReport:
    """The report with a mention for each effect that is named alone or in a list of short forms."""
    text, tagged = report.text, TaggedText(report.mentions, report.relations)
    is_told = report.source != QUESTIONS.name and report.was_read and not report.relations
    verbatim = is_told and bool(report.stated_drugs) and is_verbatim(text)
    if verbatim:
        tagged = TaggedText(tuple(with_verbatims(text, report.mentions)))
    clinical = report.is_clinical
    found, expansions = with_parts(text, tagged, report.expansions, clinical=clinical, verbatim=verbatim)
    if found.mentions == report.mentions:
        return report
    return replace(report, mentions=found.mentions, relations=found.relations, expansions=expansions)


def _effects(report: TaggedReport) -> list[int]:
    """Positions of the mentions that are coded. A question that names no medicine has none: of 60 such
    questions with effects that were read, 59 asked about an illness.
    """
    names_drug = report.stated_drugs or any(m.label == DRUG for m in report.mentions)
    if report.source == QUESTIONS.name and not names_drug:
        return []
    return [i for i, m in enumerate(report.mentions) if m.label in CODED_LABELS]


def _coded(report: TaggedReport, effects: Sequence[int], codings: Iterator[Coding]) -> CodedReport:
    text = report.text
    clinical, asked = report.is_clinical, report.source == QUESTIONS.name
    tagged = TaggedText(report.mentions, report.relations)
    stated = report.stated_drugs
    suspects = Suspects(text, tagged, expansions=report.expansions, stated=stated, clinical=clinical)
    uses, mentions, events = KnownUses(report.stated), list(report.mentions), []
    for effect in effects:
        state = asserted(text, mentions[effect], clinical=clinical, asked=asked, of_patient=bool(stated))
        coding = next(codings)
        if coding.serious and not clinical and is_short_form_of_posts(mentions[effect].text):
            coding = replace(coding, nil=True)
        event = CodedEvent.of(effect, suspects.of(effect), coding, state)
        may_be_indication = state == Assertion() and event.drug_evidence != "relation"
        if may_be_indication and uses.explain(text, mentions[effect], event.pt, event.drugs):
            mentions[effect] = _as_indication(mentions[effect])
        else:
            events.append(event)
    if len(events) < len(effects):  # what is told of an indication is no course of an effect
        report = replace(report, case_fields=case_fields(text, mentions, clinical=clinical))
    return extend(CodedReport, report, mentions=tuple(mentions), events=tuple(events))


def _as_indication(effect: Mention) -> Mention:
    return replace(effect, label=INDICATION, status="indication", status_score=None)
