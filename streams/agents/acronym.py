"""sentences -> sentences.expanded: says what the acronyms of a sentence stand for; the text stays as it
is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from models.types import Expansion
from streams.records import ExpandedReport, Report, extend


class Expander(Protocol):
    def predict(self, batch: Sequence[str]) -> Sequence[Sequence[Expansion]]: ...


def predict(model: Expander, reports: Sequence[Report]) -> list[ExpandedReport]:
    expanded = model.predict([r.text for r in reports])
    return [extend(ExpandedReport, r, expansions=tuple(e)) for r, e in zip(reports, expanded, strict=True)]
