"""The words that a mention is coded by, where it is nothing but a part of the body.

Of "tingling in arms, legs and hands" the tagger makes three mentions, and "legs" alone says nothing of what
is wrong with them: it is coded as "tingling in legs".
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from operator import attrgetter

from models.rules.notation import patterns
from models.types import CODED_LABELS, Mention

#: Most mentions that are nothing but a part of the body between a mention and the one that completes it.
_MOST = 12
_SAYS = patterns("wording")


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
