"""sentences -> sentences.expanded: finds the long forms of a sentence's acronyms; the text is not changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from models.types import Expansion
from streams.records import ExpandedReport, Report, extend


class Expander(Protocol):
    def predict(self, batch: Sequence[str]) -> Sequence[Sequence[Expansion]]: ...


def predict(model: Expander, reports: Sequence[Report]) -> list[ExpandedReport]:
    """One expanded report for each report, in order; an expansion with candidates is an undecided one."""
    expanded = model.predict([r.text for r in reports])
    return [
        extend(
            ExpandedReport,
            report,
            expansions=tuple(e for e in own if not e.candidates),
            undecided=tuple(e for e in own if e.candidates),
        )
        for report, own in zip(reports, expanded, strict=True)
    ]
