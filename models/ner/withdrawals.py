"""Withdrawal from a drug that a post names as such: "paxil withdrawal", "having withdrawals from citalopram".

Public corpora annotate the symptoms of a withdrawal and never the word, so a tagger that learns from them
leaves it out.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Sequence

from models.types import DRUG, WITHDRAWAL, Mention

#: Characters before the word in which a word that decides is looked for.
REACH = 120
_WORD = re.compile(
    r"(?<![\w#@-])withdraw(?:al|l|le|el|la)s?(?:\s+(?:side\s+)?(?:effects?|symptoms?|syndrome|sickness))?"
    r"(?![\w-])",
    re.IGNORECASE,
)
#: Between a drug and the word behind it, and between the word and a drug behind it.
_BEHIND = re.compile(r"(?:\s*['\u2019]s)?\s+", re.IGNORECASE)
_FROM = re.compile(r"\s+(?:from|off)\s+(?:(?:the|my|this|these|all|your)\s+)?#?", re.IGNORECASE)
_OF = re.compile(r"\s+of\s+(?:(?:the|my|this)\s+)?#?", re.IGNORECASE)
#: Words before it that say that somebody has it, with at most two others between.
_HAD = re.compile(
    r"\b(?:ha(?:ve|s|d|ving)|suffer(?:s|ed|ing)?|experienc(?:e|es|ed|ing)|"
    r"(?:go(?:es|ing|ne)?|went|been) through|thru|in|into|from|get(?:s|ting)?|got|dealt with|dealing with)"
    r"(?:\s+[\w'\u2019]+){0,2}\s+$",
    re.IGNORECASE,
)
#: What follows where it sets in or is there.
_SETS_IN = re.compile(
    r"\s+(?:is|are|was|were|has|have|had|hits?|kick(?:s|ed|ing)|suck(?:s|ed)|day|hour)\b", re.IGNORECASE
)
#: Words before it, with at most six others between, after which it is none that the writer has: a comparison,
#: a search, an intention, a fear, a possibility (unlike "in May") or a denial.
_NONE = re.compile(
    r"(?:\b(?:like|similar to|avoid(?:s|ed|ing)?|prevent(?:s|ed|ing)?|minimi[sz]e[sd]?|reduc(?:e|es|ed|ing)|"
    r"search(?:ed|ing)? for|about|no|not|never|without|if|(?<!in )(?<!since )(?<!last )may|might|could|can|"
    r"would|will|(?:scared|afraid|terrified|frightened|fear|risk) of|fear(?:ed|ing)|dread(?:ed|ing))"
    r"|n\s?['\u2019]\s?t)"
    r"(?:\s+[\w'\u2019]+){0,6}\s+$",
    re.IGNORECASE,
)


def named_withdrawals(text: str, mentions: Sequence[Mention]) -> list[Mention]:
    """The withdrawals that `text` names and that overlap none of its mentions, labelled WITHDRAWAL, with
    score 1 and no status, so that the rules flag them; none where no mention is a drug.
    """
    drugs = sorted((m.start, m.end) for m in mentions if m.label == DRUG)
    if not drugs:
        return []
    taken = bytearray(len(text))
    for m in mentions:
        taken[m.start : m.end] = b"1" * (m.end - m.start)
    found = []
    for match in _WORD.finditer(text):
        start, end = match.span()
        if not any(taken[start:end]) and _is_event(text, start, end, drugs):
            found.append(Mention(start, end, match.group(), WITHDRAWAL, 1.0))
    return found


def _is_event(text: str, start: int, end: int, drugs: Sequence[tuple[int, int]]) -> bool:
    """`drugs`: starts and ends, in text order."""
    behind = text[max(0, start - REACH) : start]
    if _NONE.search(behind):
        return False
    place = bisect(drugs, (start, end))
    if place and _BEHIND.fullmatch(text, drugs[place - 1][1], start):
        return True
    if place < len(drugs):
        next_start = drugs[place][0]
        of_drug = " " in text[start:end] and _OF.fullmatch(text, end, next_start)
        if of_drug or _FROM.fullmatch(text, end, next_start):
            return True
    return bool(_HAD.search(behind) or _SETS_IN.match(text, end))
