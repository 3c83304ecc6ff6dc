"""posts, questions -> mentions: tags drugs, adverse events, indications, withdrawal and other symptoms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from models.language import ENGLISH, identify
from models.ner.named_drugs import with_named_drugs
from streams.records import Report, TaggedReport, extend


def predict(model: Any, reports: Sequence[Report]) -> list[TaggedReport]:
    """One tagged report for each report, in order; without mentions where the model found none, or where it
    does not read the report's language, which is then named, whatever the source states. The model is
    given what the source states of each text; its attribute `languages` names those that it reads.
    """
    supported = getattr(model, "languages", ENGLISH)
    languages = [identify(r.text, supported) for r in reports]
    read = [r for r, found in zip(reports, languages, strict=True) if not found.other]
    tagged = iter(model.predict([r.text for r in read], [r.stated for r in read]))
    return [
        extend(
            TaggedReport,
            r,
            mentions=() if found.other else tuple(with_named_drugs(r.text, next(tagged))),
            language=found.other or r.language,
            language_score=found.score,
            read=found.other is None,
        )
        for r, found in zip(reports, languages, strict=True)
    ]
