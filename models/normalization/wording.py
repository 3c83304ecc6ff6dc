"""The words that a mention is coded by, where its own are too few or too many.

Of "tingling in arms, legs and hands" the tagger makes three mentions, and "legs" alone says nothing of what
is wrong with them: it is coded as "tingling in legs". A mention that ends with a drug ("lost my period on
testosterone") or begins with one as a heading ("Ritalin - headaches") is coded without it, because a term may
be about the drug.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from operator import attrgetter

from models.types import CODED_LABELS, DRUG, Mention

#: Most mentions that are nothing but a part of the body between a mention and the one that completes it.
_MOST = 12
_PART = (
    r"(?:arm|leg|hand|foot|finger|thumb|toe|face|lip|tongue|mouth|jaw|neck|throat|shoulder|elbow|wrist|hip|knee"
    r"|ankle|calf|thigh|back|chest|stomach|belly|abdomen|scalp|head|eye|ear|eyelid|cheek|nose|shin|heel|palm|forearm"
    r"|joint|muscle|limb|extremity)s?|feet|calves|extremities"
)
_OWNER = r"(?:(?:my|the|both|left|right|upper|lower|all)\s+){0,3}"
#: Nothing but parts of the body.
_PARTS = re.compile(rf"{_OWNER}(?:{_PART})(?:\s*(?:,|/|&|and|or)+\s+{_OWNER}(?:{_PART}))*", re.IGNORECASE)
#: A part of the body at the end of a longer mention, with what belongs to it.
_ENDS_WITH_PART = re.compile(rf"(?<=[\w,;]\s){_OWNER}\b(?:{_PART})$", re.IGNORECASE)
#: Between mentions that are enumerated.
_AND = re.compile(r"\s*+(?:[,/&]|(?:,\s*+)?\b(?:and|or)\b)\s*+(?:in\s+)?", re.IGNORECASE)
#: From the effect to the drug at the end of a mention: "on", "since I started the".
_TO_DRUG = re.compile(
    r"\s+(?:(?:while|when|only)\s+)?(?:on|from|with|after|since|during|due\s+to|because\s+of|thanks\s+to)\s+"
    r"(?:(?:i|my|the|this|that|taking|starting|started|using|being|on|of|a|an|mg|mcg|\d[\w.]*)\s+){0,4}#?$",
    re.IGNORECASE,
)
#: Before it, where the drug is a part of the effect ("overdosed on Xanax", "withdrawal from Paxil").
_OF_THE_DRUG = re.compile(
    r"\b(?:withdraw\w*|detox\w*|allerg\w*|react\w*|sensiti\w*|intoleran\w*|toxic\w*|poison\w*|intoxicat\w*|overdos\w*"
    r"|od|od'?ed|depend\w*|addict\w*|hooked|relian\w*|rely\w*|high|drunk|stoned|crash\w*|com(?:e|es|ing)(?:\s+\w+)?"
    r"|came(?:\s+\w+)?|rebound\w*|hangover|hung\s?over|interact\w*|level\w*)$",
    re.IGNORECASE,
)
#: Between a drug that is a heading and its effect.
_HEADING = re.compile(r"\s+-+>?\s*|\s*(?:[\u2013\u2014:=]|[-=]>)\s*")


def start_without_drug(text: str, mention: Mention, mentions: Sequence[Mention]) -> int:
    """Where the words of an effect start behind a drug that is their heading; `mentions` as below."""
    for other in _between(mentions, mention.start, mention.start + 1):
        heading = _HEADING.match(text, other.end, mention.end) if other.label == DRUG else None
        if heading and any(c.isalnum() for c in text[heading.end() : mention.end]):
            return heading.end()
    return mention.start


def end_without_drug(text: str, mention: Mention, mentions: Sequence[Mention]) -> int:
    """Where the words of an effect end without a drug behind it; `mentions`: those of the text, in order."""
    for other in _between(mentions, mention.start + 1, mention.end):
        if other.label != DRUG or any(c.isalnum() for c in text[other.end : mention.end]):
            continue
        link = _TO_DRUG.search(text, mention.start, other.start)
        if link and not _OF_THE_DRUG.search(text, mention.start, link.start()):
            return link.start()
    return mention.end


def effect_of_part(text: str, mention: Mention, mentions: Sequence[Mention]) -> str:
    """What stands before a mention that is nothing but a part of the body, from the effect with which its
    enumeration begins: "tingling in " of "legs"; else an empty text.
    """
    if not _PARTS.fullmatch(mention.text):
        return ""
    start = mention.start
    place = bisect_left(mentions, start, key=attrgetter("start"))
    for before in reversed(mentions[max(0, place - _MOST) : place]):
        if before.label not in CODED_LABELS or not _AND.fullmatch(text, before.end, start):
            return ""
        if not _PARTS.fullmatch(before.text):
            found = _ENDS_WITH_PART.search(before.text)
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
