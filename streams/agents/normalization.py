"""mentions -> events: codes each adverse event to the terminology and says which drugs are suspected and
whether the text affirms it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from models.assertion.rules import assertion
from models.types import CODED_LABELS, DRUG, Coding, Expansion, Mention, Query
from streams import metrics
from streams.records import CodedEvent, CodedReport, TaggedReport, extend

Evidence = Literal["relation", "report", "only_drug_in_text", "none"]


class Coder(Protocol):
    def predict(self, batch: Sequence[Query]) -> Sequence[Coding]: ...


def predict(model: Coder, reports: Sequence[TaggedReport]) -> list[CodedReport]:
    """All mentions of the batch are coded in one call; candidates are kept with each event, NIL or not."""
    wanted = [[i for i, m in enumerate(r.mentions) if m.label in CODED_LABELS] for r in reports]
    queries = [query(r, r.mentions[i]) for r, own in zip(reports, wanted, strict=True) for i in own]
    codings = iter(model.predict(queries))
    return [
        extend(CodedReport, r, events=tuple(_event(r, i, next(codings)) for i in own))
        for r, own in zip(reports, wanted, strict=True)
    ]


def query(report: TaggedReport, mention: Mention) -> Query:
    """The mention as it is embedded: acronyms inside it are replaced by their long forms."""
    surface, shift = mention.text, mention.start
    for expansion in sorted(report.expansions, key=_start, reverse=True):
        if mention.start <= expansion.start and expansion.end <= mention.end:
            surface = (
                surface[: expansion.start - shift] + expansion.long_form + surface[expansion.end - shift :]
            )
    return Query(report.text, mention.start, mention.end, surface)


def suspects(report: TaggedReport, mention: int) -> tuple[tuple[str, ...], Evidence]:
    """Suspected drugs and why: related in the text; else the drug the source names; else the only drug in the
    text.

    A sentence that went through the relation stage without a relation for this effect has no suspect.
    """
    related = [report.mentions[r.head] for r in report.relations if r.tail == mention]
    if related:
        return _names(report, related), "relation"
    if report.drug:
        return (report.drug,), "report"
    names = _names(report, [m for m in report.mentions if m.label == DRUG])
    if len(names) == 1 and "relation" not in report.releases:
        return names, "only_drug_in_text"
    return (), "none"


def count(outputs: Sequence[CodedReport]) -> None:
    for output in outputs:
        for event in output.events:
            metrics.EVENTS.labels("nil" if event.nil else "coded").inc()


def _event(report: TaggedReport, mention: int, coding: Coding) -> CodedEvent:
    drugs, evidence = suspects(report, mention)
    place = report.mentions[mention]
    said = assertion(report.text, place.start, place.end)
    best = coding.candidates[0] if coding.candidates else None
    coded = None if coding.nil else best
    return CodedEvent(
        mention=mention,
        drugs=drugs,
        drug_evidence=evidence,
        llt=coded.llt if coded else None,
        pt=coded.pt if coded else None,
        soc=coded.soc if coded else None,
        score=best.score if best else 0.0,
        nil=coding.nil,
        candidates=coding.candidates,
        negated=said.negated,
        hypothetical=said.hypothetical,
        other_experiencer=said.other_experiencer,
        context_weight=coding.context_weight,
    )


def _names(report: TaggedReport, mentions: Sequence[Mention]) -> tuple[str, ...]:
    """Nonproprietary names; else what an abbreviated drug stands for; else the drug as written."""
    return tuple(dict.fromkeys(m.generic or query(report, m).surface.lower() for m in mentions))


def _start(expansion: Expansion) -> int:
    return expansion.start
