"""sentences.expanded -> mentions: finds drugs and effects in a sentence and which drug caused which
effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from models.types import TaggedText
from streams import metrics
from streams.records import ExpandedReport, TaggedReport, extend


class Relator(Protocol):
    def predict(self, batch: Sequence[str]) -> Sequence[TaggedText]: ...


def predict(model: Relator, reports: Sequence[ExpandedReport]) -> list[TaggedReport]:
    found = model.predict([r.text for r in reports])
    return [
        extend(TaggedReport, r, mentions=f.mentions, relations=f.relations)
        for r, f in zip(reports, found, strict=True)
    ]


def count(outputs: Sequence[TaggedReport]) -> None:
    for output in outputs:
        for mention in output.mentions:
            metrics.MENTIONS.labels("relation", mention.label).inc()
