"""posts -> mentions: tags drugs, adverse events, indications, withdrawal and other symptoms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from models.types import Mention
from streams import metrics
from streams.records import Report, TaggedReport, extend


class Tagger(Protocol):
    def predict(self, batch: Sequence[str]) -> Sequence[Sequence[Mention]]: ...


def predict(model: Tagger, reports: Sequence[Report]) -> list[TaggedReport]:
    """One tagged report for each report, in order; without mentions where the model found none."""
    tagged = model.predict([r.text for r in reports])
    return [extend(TaggedReport, r, mentions=tuple(m)) for r, m in zip(reports, tagged, strict=True)]


def count(outputs: Sequence[TaggedReport]) -> None:
    """Adds the mentions of a batch to the counter, by label."""
    for output in outputs:
        for mention in output.mentions:
            metrics.MENTIONS.labels("ner", mention.label).inc()
