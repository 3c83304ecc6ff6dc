"""sentences.expanded -> mentions: finds drugs, effects and the relations between them in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from models.types import Expansion, TaggedText
from streams.records import ExpandedReport, TaggedReport, extend


class Relator(Protocol):
    def predict(
        self, batch: Sequence[str], expansions: Sequence[Sequence[Expansion]]
    ) -> Sequence[TaggedText]: ...


def predict(model: Relator, reports: Sequence[ExpandedReport]) -> list[TaggedReport]:
    """One tagged report for each report, in order; `head` and `tail` of a relation are positions in its
    mentions. Acronyms are read as their long forms.
    """
    tagged = model.predict([r.text for r in reports], [r.expansions for r in reports])
    return [
        extend(TaggedReport, r, mentions=t.mentions, relations=t.relations, read=True)
        for r, t in zip(reports, tagged, strict=True)
    ]
