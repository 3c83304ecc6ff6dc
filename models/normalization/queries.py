"""The words of a mention that are coded to the terminology.

Of "tingling in arms, legs and hands" the tagger makes three mentions, and "legs" alone says nothing of what
is wrong with them: it is coded as "tingling in legs".
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from operator import attrgetter

from models.normalization.measurements import end_with_reading
from models.rules.notation import patterns
from models.text import with_long_forms
from models.types import CODED_LABELS, Expansion, Mention, Query

#: Most mentions that are nothing but a part of the body between a mention and the one that completes it.
_MOST = 12
_SAYS = patterns("wording")


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


def effect_of_part(text: str, mention: Mention, mentions: Sequence[Mention]) -> str:
    """What stands before a mention that is nothing but a part of the body, from the effect with which its
    enumeration begins: "tingling in " of "legs"; else an empty text.
    """
    if not _SAYS["parts"].fullmatch(mention.text):
        return ""
    start = mention.start
    place = bisect_left(mentions, start, key=attrgetter("start"))
    for before in reversed(mentions[max(0, place - _MOST) : place]):
        if before.label not in CODED_LABELS or not _SAYS["and"].fullmatch(text, before.end, start):
            return ""
        if not _SAYS["parts"].fullmatch(before.text):
            found = _SAYS["ends_with_part"].search(before.text)
            return before.text[: found.start()] if found else ""
        start = before.start
    return ""
