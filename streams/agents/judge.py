"""The second reading of the stage `ner`: a judge decides what the effects are that the tagger found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from models.types import Case, Mention
from streams.records import TaggedReport


class Judge(Protocol):
    """A model that reads texts with their mentions."""

    def predict(self, batch: Sequence[Case]) -> Sequence[Sequence[Mention]]: ...


def judged(model: Judge, reports: Sequence[TaggedReport]) -> list[TaggedReport]:
    """The reports with their mentions as the judge decides; it knows the drugs and the indication that their
    sources state.
    """
    found = model.predict([Case(r.text, r.mentions, r.stated) for r in reports])
    return [replace(r, mentions=tuple(own)) for r, own in zip(reports, found, strict=True)]
