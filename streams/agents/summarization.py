"""questions -> summaries: shortens a long question to its essential one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from models.types import ShortQuestion
from streams.records import Report, Summary, extend


class Summarizer(Protocol):
    def predict(self, batch: Sequence[str]) -> Sequence[ShortQuestion]: ...


def predict(model: Summarizer, reports: Sequence[Report]) -> list[Summary]:
    """One summary for each report, in order."""
    questions = model.predict([r.text for r in reports])
    return [extend(Summary, r, summary=q) for r, q in zip(reports, questions, strict=True)]
