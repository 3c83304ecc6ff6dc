"""The words that a mention is coded by, where its own are too few or too many.

Of "tingling in arms, legs and hands" the tagger makes three mentions, and "legs" alone says nothing of what
is wrong with them: it is coded as "tingling in legs". A mention that ends with a drug ("lost my period on
testosterone") or begins with one as a heading ("Ritalin - headaches") is coded without it, because a term may
be about the drug.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from operator import attrgetter

from models.rules.notation import patterns
from models.types import CODED_LABELS, DRUG, Mention

#: Most mentions that are nothing but a part of the body between a mention and the one that completes it.
_MOST = 12
_SAYS = patterns("wording")


def start_without_drug(text: str, mention: Mention, mentions: Sequence[Mention]) -> int:
    """Where the words of an effect start behind a drug that is their heading; `mentions` as below."""
    for other in _between(mentions, mention.start, mention.start + 1):
        heading = _SAYS["heading"].match(text, other.end, mention.end) if other.label == DRUG else None
        if heading and any(c.isalnum() for c in text[heading.end() : mention.end]):
            return heading.end()
    return mention.start


def end_without_drug(text: str, mention: Mention, mentions: Sequence[Mention]) -> int:
    """Where the words of an effect end without a drug behind it; `mentions`: those of the text, in order."""
    for other in _between(mentions, mention.start + 1, mention.end):
        if other.label != DRUG or any(c.isalnum() for c in text[other.end : mention.end]):
            continue
        link = _SAYS["to_drug"].search(text, mention.start, other.start)
        if link and not _SAYS["of_the_drug"].search(text, mention.start, link.start()):
            return link.start()
    return mention.end


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


def _between(mentions: Sequence[Mention], start: int, end: int) -> Sequence[Mention]:
    """The mentions that begin from `start` to before `end`."""
    return mentions[
        bisect_left(mentions, start, key=attrgetter("start")) : bisect_left(
            mentions, end, key=attrgetter("start")
        )
    ]
