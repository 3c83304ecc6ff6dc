"""questions -> summaries: the short question that matters in a long one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from models.types import ShortQuestion
from streams.records import Report, Summary, extend


class Summarizer(Protocol):
    def predict(self, batch: Sequence[str]) -> Sequence[ShortQuestion]: ...


def predict(model: Summarizer, reports: Sequence[Report]) -> list[Summary]:
    short = model.predict([r.text for r in reports])
    return [extend(Summary, r, summary=s) for r, s in zip(reports, short, strict=True)]
