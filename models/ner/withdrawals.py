"""Withdrawal from a drug that a post names as such: "paxil withdrawal", "having withdrawals from citalopram".

Public corpora annotate the symptoms of a withdrawal and never the word, so a tagger that learns from them
leaves it out.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence

from models.rules.notation import patterns
from models.types import DRUG, WITHDRAWAL, Mention

#: Characters before the word in which a word that decides is looked for.
REACH = 120
_SAYS = patterns("withdrawals")


def named_withdrawals(text: str, mentions: Sequence[Mention]) -> list[Mention]:
    """The withdrawals that `text` names and that overlap none of its mentions, labelled WITHDRAWAL, with
    score 1 and no status, so that the rules flag them; none where no mention is a drug.
    """
    drugs = sorted((m.start, m.end) for m in mentions if m.label == DRUG)
    if not drugs or "withdraw" not in text.lower():
        return []
    taken = bytearray(len(text))
    for m in mentions:
        taken[m.start : m.end] = b"1" * (m.end - m.start)
    withdrawals = []
    for match in _SAYS["word"].finditer(text):
        start, end = match.span()
        if not any(taken[start:end]) and _is_event(text, start, end, drugs):
            withdrawals.append(Mention(start, end, match.group(), WITHDRAWAL, 1.0))
    return withdrawals


def _is_event(text: str, start: int, end: int, drugs: Sequence[tuple[int, int]]) -> bool:
    """`drugs`: starts and ends, in text order."""
    behind = text[max(0, start - REACH) : start]
    if _SAYS["none"].search(behind):
        return False
    place = bisect(drugs, (start, end))
    if place and _SAYS["behind"].fullmatch(text, drugs[place - 1][1], start):
        return True
    if place < len(drugs):
        next_start = drugs[place][0]
        of_drug = " " in text[start:end] and _SAYS["of"].fullmatch(text, end, next_start)
        if of_drug or _SAYS["from"].fullmatch(text, end, next_start):
            return True
    return bool(_SAYS["had"].search(behind) or _SAYS["sets_in"].match(text, end))
