"""mentions -> events: codes each adverse event to the terminology, with its suspected drugs and assertion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from models.assertion.flags import asserted
from models.drugs.suspects import Suspects
from models.ner.stated_indication import KnownUses
from models.normalization.queries import query_of
from models.normalization.serious import is_short_form_of_posts
from models.types import CODED_LABELS, DRUG, INDICATION, Assertion, Coding, Mention, TaggedText
from streams.records import CodedEvent, CodedReport, TaggedReport, extend
from streams.topics import QUESTIONS

#: The stage of clinical sentences; posts and questions come from another one.
_RELATION = "relation"


def predict(model: Any, reports: Sequence[TaggedReport]) -> list[CodedReport]:
    """One coded report for each report, in order.

    All mentions of the batch are coded in one call. Every event keeps its candidates, also a NIL one. An
    effect that is what the source states as the indication becomes a mention of that.
    """
    read = [(r, _effects(r)) for r in reports]
    queries = [query_of(r.text, r.mentions[i], r.mentions, r.expansions) for r, own in read for i in own]
    codings = iter(model.predict(queries))
    return [_coded(r, own, codings) for r, own in read]


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
    clinical, asked = _RELATION in report.releases, report.source == QUESTIONS.name
    tagged = TaggedText(report.mentions, report.relations)
    suspects = Suspects(
        text, tagged, expansions=report.expansions, stated=report.stated_drugs, clinical=clinical
    )
    uses, mentions, events = KnownUses(report.stated), list(report.mentions), []
    for effect in effects:
        state = asserted(text, mentions[effect], clinical=clinical, asked=asked)
        coding = next(codings)
        if coding.serious and not clinical and is_short_form_of_posts(mentions[effect].text):
            coding = replace(coding, nil=True)
        event = CodedEvent.of(effect, suspects.of(effect), coding, state)
        may_be_indication = state == Assertion() and event.drug_evidence != "relation"
        if may_be_indication and uses.explain(text, mentions[effect], event.pt, event.drugs):
            mentions[effect] = _as_indication(mentions[effect])
        else:
            events.append(event)
    return extend(CodedReport, report, mentions=tuple(mentions), events=tuple(events))


def _as_indication(effect: Mention) -> Mention:
    return replace(effect, label=INDICATION, status="indication", status_score=None)
