"""posts, questions, expanded sentences -> mentions: tags drugs, adverse events, indications, withdrawal and
other symptoms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from models.case_fields.fields import case_fields
from models.language import ENGLISH, Identified, identify
from models.ner.named_drugs import with_named_drugs
from streams.records import Report, TaggedReport, extend

#: What is said of the language of a text that is read in any case.
_READ = Identified(None, None)


def predict(model: Any, reports: Sequence[Report]) -> list[TaggedReport]:
    """One tagged report for each report, in order; without mentions where the model found none, or where it
    does not read the report's language, which is then named, whatever the source states. The model is
    given what the source states of each text; its attribute `languages` names those that it reads. Clinical
    sentences are read whatever their language looks like: notes are short forms, numbers and names.
    """
    supported = getattr(model, "languages", ENGLISH)
    posts = [r for r in reports if not r.is_clinical]
    found_in = iter(identify([r.text for r in posts], supported))
    pairs = [(r, _READ if r.is_clinical else next(found_in)) for r in reports]
    read = [r for r, found in pairs if not found.other]
    tagged = iter(model.predict([r.text for r in read], [r.stated for r in read]))
    mentions = [() if f.other else tuple(with_named_drugs(r.text, next(tagged))) for r, f in pairs]
    return [
        extend(
            TaggedReport,
            r,
            mentions=named,
            case_fields=() if found.other else case_fields(r.text, named, clinical=r.is_clinical),
            language=found.other or r.language,
            language_score=found.score,
            read=found.other is None,
        )
        for (r, found), named in zip(pairs, mentions, strict=True)
    ]
