"""mentions -> events: codes each adverse event to the terminology, with its suspected drugs and assertion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from models.assertion.status import asserted
from models.drugs.suspects import Suspects
from models.normalization.queries import query_of
from models.text import readable
from models.types import CODED_LABELS, Coding, Query, TaggedText
from streams.records import CodedEvent, CodedReport, TaggedReport, extend

#: The stage of clinical sentences; posts come from another one.
_RELATION = "relation"


class Coder(Protocol):
    def predict(self, batch: Sequence[Query]) -> Sequence[Coding]: ...


def predict(model: Coder, reports: Sequence[TaggedReport]) -> list[CodedReport]:
    """One coded report for each report, in order.

    All mentions of the batch are coded in one call. Every event keeps its candidates, also a NIL one.
    """
    texts = [readable(r.text) for r in reports]
    effects = [[i for i, m in enumerate(r.mentions) if m.label in CODED_LABELS] for r in reports]
    read = list(zip(texts, reports, effects, strict=True))
    queries = [
        query_of(text, r.mentions[i], r.mentions, r.expansions) for text, r, numbers in read for i in numbers
    ]
    codings = iter(model.predict(queries))
    return [
        extend(CodedReport, r, events=tuple(_events(text, r, numbers, codings))) for text, r, numbers in read
    ]


def _events(
    text: str, report: TaggedReport, effects: Sequence[int], codings: Iterator[Coding]
) -> Iterator[CodedEvent]:
    clinical = _RELATION in report.releases
    tagged = TaggedText(report.mentions, report.relations)
    suspects = Suspects(
        text, tagged, expansions=report.expansions, stated=report.stated_drugs, clinical=clinical
    )
    for effect in effects:
        state = asserted(text, report.mentions[effect], clinical=clinical)
        yield CodedEvent.of(effect, suspects.of(effect), next(codings), state)
