"""mentions -> events: codes each adverse event to the terminology, with its suspected drugs and assertion."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, Protocol

from models.assertion.status import asserted
from models.drugs import bundled_lexicon
from models.drugs.causes import NamedDrug, causes
from models.drugs.misspelled import generic_of_misspelling
from models.drugs.nicknames import generic_of_nickname
from models.normalization.measurements import end_with_reading
from models.normalization.wording import effect_of_part, end_without_drug, start_without_drug
from models.text import readable
from models.types import CODED_LABELS, DRUG, Coding, Expansion, Mention, Query, Span
from streams import metrics
from streams.records import CodedEvent, CodedReport, TaggedReport, extend

Evidence = Literal["relation", "text", "report", "only_drug_in_text", "none"]
#: The stage of clinical sentences; posts come from another one.
_RELATION = "relation"


class Coder(Protocol):
    def predict(self, batch: Sequence[Query]) -> Sequence[Coding]: ...


def predict(model: Coder, reports: Sequence[TaggedReport]) -> list[CodedReport]:
    """One coded report for each report, in order.

    All mentions of the batch are coded in one call. Every event keeps its candidates, also a NIL one.
    """
    read = [_as_read(r) for r in reports]
    to_code = [[i for i, m in enumerate(r.mentions) if m.label in CODED_LABELS] for r in reports]
    queries = [query(r, r.mentions[i]) for r, events in zip(read, to_code, strict=True) for i in events]
    codings = iter(model.predict(queries))
    return [
        extend(CodedReport, r, events=tuple(_event(own, i, next(codings)) for i in events))
        for r, own, events in zip(reports, map(Suspects, read), to_code, strict=True)
    ]


def _as_read(report: TaggedReport) -> TaggedReport:
    text = readable(report.text)
    return report if text == report.text else extend(TaggedReport, report, text=text)


def query(report: TaggedReport, mention: Mention) -> Query:
    """The mention as the model reads it: in its surface form, acronyms are replaced by their long forms, and
    the value of what it measures is added ("blood sugar was" of "blood sugar was in the 40s"). A drug at its
    end or as its heading is left out, and a part of the body alone is read with the effect before it.
    """
    is_coded, offset, end = mention.label in CODED_LABELS, mention.start, mention.end
    if is_coded:
        offset = start_without_drug(report.text, mention, report.mentions)
        end = end_without_drug(report.text, mention, report.mentions)
    surface = report.text[offset:end]
    for expansion in sorted(report.expansions, key=_start, reverse=True):
        if offset <= expansion.start and expansion.end <= end:
            surface = (
                surface[: expansion.start - offset] + expansion.long_form + surface[expansion.end - offset :]
            )
    if is_coded and end == mention.end:
        surface += report.text[end : end_with_reading(report.text, mention.start, mention.end)]
        surface = effect_of_part(report.text, mention, report.mentions) + surface
    return Query(report.text, mention.start, mention.end, surface)


class Suspects:
    """The suspected drugs of each effect of a report, and the evidence: the drugs related to the effect in
    the text; else those of a post whose words name them as its cause; else those that the source states, by
    their nonproprietary names; else the only drug of a post, or of several the one that its place in the post
    speaks for.

    The rules for posts do not apply to a sentence from the relation stage: without a relation the text gives
    no suspect. What all effects of a report share is found once, because there may be thousands.
    """

    def __init__(self, report: TaggedReport) -> None:
        self.report = report
        self._related: dict[int, list[Mention]] = {}
        for r in report.relations:
            self._related.setdefault(r.tail, []).append(report.mentions[r.head])
        self._drugs = [] if _RELATION in report.releases else sorted(_drugs(report))
        self._starts = sorted(m.start for m in report.mentions if m.label in CODED_LABELS)
        self._stated = tuple(
            dict.fromkeys(g for name in report.stated_drugs for g in bundled_lexicon().generics(name))
        )
        self._only = not self._stated and len({d.name for d in self._drugs}) == 1

    def of(self, mention: int) -> tuple[tuple[str, ...], Evidence]:
        """Those of the mention with this number."""
        report = self.report
        if related := self._related.get(mention):
            return tuple(dict.fromkeys(name for m in related for name in _names(report, m))), "relation"
        effect = report.mentions[mention]
        own = Span(effect.start, effect.end)
        found = causes(report.text, self._drugs, own, self._starts) if self._drugs else None
        if self._stated and not (found and found.stated):
            return self._stated, "report"
        if found is None:
            return (), "none"
        return found.names, "only_drug_in_text" if self._only else "text"


def count(outputs: Sequence[CodedReport]) -> None:
    """Adds the events of a batch to the counter, by outcome, and the reports in languages without events."""
    for output in outputs:
        if not output.was_read:
            metrics.EVENTS.labels("unsupported_language").inc()
        for event in output.events:
            metrics.EVENTS.labels("nil" if event.nil else "coded").inc()


def _event(suspects: Suspects, mention: int, coding: Coding) -> CodedEvent:
    report = suspects.report
    drugs, evidence = suspects.of(mention)
    span = report.mentions[mention]
    state = asserted(report.text, span, clinical=_RELATION in report.releases)
    best = coding.candidates[0] if coding.candidates else None
    term = None if coding.nil else best
    return CodedEvent(
        mention=mention,
        drugs=drugs,
        drug_evidence=evidence,
        llt=term.llt if term else None,
        pt=term.pt if term else None,
        soc=term.soc if term else None,
        score=best.score if best else 0.0,
        nil=coding.nil,
        candidates=coding.candidates,
        negated=state.negated,
        hypothetical=state.hypothetical,
        other_experiencer=state.other_experiencer,
        context_weight=coding.context_weight,
        serious=term is not None and coding.serious,
    )


def _drugs(report: TaggedReport) -> list[NamedDrug]:
    """The drugs that a post names. Where the tagger's lexicon does not have one, the bundled lexicon, which
    may be newer, a nickname or a misspelling gives its nonproprietary name.
    """

    def known(name: str) -> str:
        found = bundled_lexicon().generic(name) or generic_of_nickname(name, report.text)
        return found or generic_of_misspelling(name) or name

    drugs = [m for m in report.mentions if m.label == DRUG]
    return [NamedDrug(m.start, m.end, m.generic or known(_name(report, m))) for m in drugs]


def _name(report: TaggedReport, mention: Mention) -> str:
    """The nonproprietary name; else the long form of an abbreviated drug; else the drug as written."""
    return mention.generic or query(report, mention).surface.lower()


def _names(report: TaggedReport, mention: Mention) -> list[str]:
    """The name; of several drugs in one mention ("ASA/Plavix", "ASA-Plavix") that of each."""
    name = _name(report, mention)
    if mention.generic is not None:
        return [name]
    found = [
        [bundled_lexicon().generic(part.strip()) for part in re.split(mark, name)] for mark in ("/", "[/+-]")
    ]
    named = ([part for part in parts if part] for parts in found if len(parts) > 1 and all(parts))
    return next(named, [generic_of_misspelling(name) or name])


def _start(expansion: Expansion) -> int:
    return expansion.start
