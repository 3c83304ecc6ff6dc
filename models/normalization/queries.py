"""The words of a mention that are coded to the terminology."""

from __future__ import annotations

from collections.abc import Sequence

from models.normalization.measurements import end_with_reading
from models.normalization.wording import effect_of_part
from models.text import with_long_forms
from models.types import Expansion, Mention, Query


def query_of(
    text: str, mention: Mention, mentions: Sequence[Mention], expansions: Sequence[Expansion] = ()
) -> Query:
    """An effect as the model reads it: in its surface form, acronyms are replaced by their long forms, and
    the value of what it measures is added ("blood sugar was" of "blood sugar was in the 40s"). A part of the
    body alone is read with the effect before it.

    `mentions`: all of the text, in order; `expansions`: of its acronyms.
    """
    surface = with_long_forms(text, mention.start, mention.end, expansions)
    surface += text[mention.end : end_with_reading(text, mention.start, mention.end)]
    surface = effect_of_part(text, mention, mentions) + surface
    return Query(text, mention.start, mention.end, surface)
