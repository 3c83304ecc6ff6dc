"""Rules for posts: which of the drugs that a text names an effect in it is attributed to.

A drug before the effect is its cause, the nearest one first, unless the text says otherwise: a switch ("from
A to B because of ...", "... since I switched from A to B"), an addition ("added A to B"), an order ("the
first one"), a purpose ("B for the ..."), a drug without problems ("B was fine"), or a cause named behind the
effect ("... from B"). Drugs that are taken together are suspected together.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

from models.types import Span


class NamedDrug(NamedTuple):
    """A drug where a text names it."""

    start: int
    end: int
    name: str
    """equal for the same medicine"""


class Causes(NamedTuple):
    """The drugs that an effect is due to."""

    names: tuple[str, ...]
    stated: bool
    """the words between drug and effect say so; else it is by their places alone"""


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.VERBOSE)


#: Looked for only where a run of marks begins: a long one would need quadratic time.
_SENTENCE_END = re.compile(r"(?<![.!?;\n])[.!?;\n]+(?:(?<=\n)|\s|$)|…")
_PRODUCT = "(?:one|drug|meds?|pills?|tablets?)"
_FORMER = _words(rf"\b (?:first|old|former|previous) \s {_PRODUCT} \b")
_LATTER = _words(rf"\b (?:second|new|latter|current|other) \s {_PRODUCT} \b")
#: "On the first" is a medicine, "on the first day" or "from the first dose" is not.
_WITH_FORMER = _words(
    rf"""\W{{0,20}} (?:on|with|from|by) \s the \s
      (?: (?:old|former) \b
        | first (?= \s* (?:[^\w\s]|$) | \s+ (?:{_PRODUCT}|and|but|not|while|though) \b))"""
)
#: Before or between two drugs of which the second replaces the first, and between them.
_SWITCHED = _words(
    r"\b (?:switch|swap|chang|mov|trad|replac)\w* \b | \b (?:went|go|gone|came|took|is|from) \b"
)
_REPLACED = _words(r"\b (?:to|2|onto|for|off) \b")
#: Before and between two drugs of which the first replaces the second: "switched to A from B".
_TO_NEW = _words(
    r"\b (?:switch|swap|chang|mov|transition|went|go|going|gone)\w* \s+ (?:\S+\s+){0,3}? (?:to|over|onto) \s+"
    r" (?:\S+\s+){0,2}? $"
)
_FROM_OLD = _words(r"\s+ (?:\S+\s+){0,3}? from \s+ (?:\S+\s+){0,2}?")
#: Behind an effect that ended with the drug that was replaced, unlike "gone after two weeks".
_WENT = _words(
    r"""\s+ (?:(?:has|have|had|all|just|finally|completely|totally) \s+){0,2}
      (?:went(?:\saway)?|gone|stopped|quit|ended|disappeared|vanished|resolved|subsided|lifted|cleared\sup) \b
      (?! \s after)"""
)
#: Up to the effect: a reason for what was said before.
_BECAUSE = _words(r"\b (?:because|bc|b/c|cause|cuz|coz|cos|due\sto|since|as) \s+ (?:\S+\s+){0,4} $")
#: From the effect up to a drug that caused it.
_FROM = _words(
    r"""\b (?:from|due\sto|because\sof|bc\sof|thanks\sto|caused\sby|courtesy\sof|side\seffects?\sof
      |after|since|on|off|start(?:ed|ing)|taking|took|when|with) \s+ (?:\S+\s+){0,3} $"""
)
#: All that is between an effect and the drug that it is said to come from, whatever drug is before both; and
#: between an effect of an enumeration and its drug ("itch with A, cramps with B").
_DIRECTLY_FROM = _words(
    r"""\s+ (?:(?:that|which) \s+)? (?:(?:is|was|were|are|i\s(?:get|got|had|have)) \s+)?
      (?:due\sto|because\sof|bc\sof|thanks\sto|caused\sby|from) \s+ (?:(?:the|my|taking) \s+){0,2} \#?"""
)
#: Between an effect that another drug before it is taken for, and its cause.
_DIRECTLY_ON = _words(r"\s+ (?:on|after|since) \s+ (?:(?:the|my|taking|starting|i\sstarted) \s+){0,2} \#?")
_DIRECTLY_WITH = _words(r"\s+ (?:with|w/|on) \s+ (?:(?:the|my) \s+)? \#?")
#: Between an effect and the drug that it began with, whatever drug is before both.
_SINCE_BEGUN = _words(
    r"""\s+ (?:(?:that|which) \s+)? (?:(?:started|began|got\s(?:worse|bad)|came|come|showed\sup) \s+)?
      (?:(?:ever|right|only|just|soon|shortly) \s+)? (?:since|after|when|once) \s+
      (?:(?:i|we|they|he|she|(?:my|the) \s \w+) \s+)? (?:add|start|begin|beg[au]n)\w* \s+
      (?:(?:taking|on|the|me|my|low|dose|of|in|\d+\s?mg) \s+){0,3} \#?"""
)
_CLAUSE = _words(r"[,;] | \b (?:and|but|while) \b")
_CHANGE = _words(
    r"\b (?:now|so|then|but|instead|switch\w*|swap\w*|chang\w*|moved?|went|put|add\w*|compared|than)\b"
)
#: From the effect up to the first of two drugs, of which the second came before the effect.
_SINCE_CHANGE = _words(
    r"""\b (?:since|after|when|once|following|now\sthat) \s+
      (?:(?!(?:so|then|but|and|which|had|until)\b) \S+\s+){0,4}?
      (?:switch|swap|chang|mov|trad|replac)\w* \s+ (?:\S+\s+){0,3}? $
      |\b (?:since|after|when|once|now\sthat) \s+ (?:\S+\s+){0,2}? (?:going|go|went|gone) \s+ from \s+ $"""
)
_CHANGED = _words(r"\s+ (?:\S+\s+){0,3}? (?:to|2|onto|for|with) \s+ (?:\S+\s+){0,2}? $")
#: Most characters between what belongs together: two drugs, a drug and its purpose, an effect and its cause.
_NEAR = 60
#: Most characters between a drug and an effect that words say something about: a text may have no full stop.
_FAR = 1000
#: Most drugs on one side of another that count as taken together with it, and most that are looked at on one
#: side of an effect and the next drug: a text may list thousands.
_MOST = 50
#: From a drug to what it is taken for.
_AGAINST = _words(r"\s* (?:[\w'-]+\s+){0,2}? (?:for|against) \s+ (?:[\w'-]+\s+){0,2} $")
#: Behind a drug that the writer does not blame.
_FINE = _words(
    r"""\W{0,20} (?:(?:is|was|were|are|has\sbeen) \s+)? (?:just\s+)?
      (?:fine|innocent|nothing|ok|okay|no\s(?:problems?|issues?|bother)|harmless|not\sto\sblame|great
        |better) \b"""
)
#: Directly before a drug that another one is told from.
_NOT = _words(r"\b (?:not|never|unlike|rather\sthan|instead\sof) \s+ (?:(?:the|my) \s+)? $")
#: Directly before a drug that another one is compared with, which is named next, and before a list of them.
_COMPARED = _words(
    r"""\b (?:compared|in\scomparison) \s (?:to|with) (?:(?:\s\S+){1,4}? \s (?:and|or|&))?
      \s+ (?:(?:the|my) \s+)? $"""
)
_BREAK = _words(r"[,;.!?:(] | \s but \s")
#: Between two drugs that are taken together, and nothing else.
_TOGETHER = _words(
    r"""\s* \)? (?:\s+ for \s+ (?:\S+\s+){1,3}? (?=\+|plus))? \s* (?:[(\d]\S* \s* (?:mg|mcg|ml)? \s*)? \s*
      (?:\+|plus|&|and|n|with|w/|on\stop\sof|along\swith|together\swith|mixed\swith|while\son|went\sin\swith|,|/|x)?
      \s* (?:and|then|plus)? \s* (?:(?:the|my|a|an|some|usual|generic|odd|\d+\s?mg) \s*)* \s*"""
)
#: Before a drug that is taken in addition to another, and between both.
_ADDED = _words(r"\b (?:add|adds|added|adding|addition\sof) \s+ (?:\S+\s+){0,2} $")
_TO_IT = _words(r"\s+ (?:\S+\s+){0,2}? (?:to|onto) \s+ (?:(?:the|my|his|her) \s+)?")
#: Behind both up to an effect, which is why the one was added, not what came of it.
_PURPOSE = _words(
    r"""\s+ (?:to|for|because|bc|as|since|due) \b
      (?: (?!\s(?:and|but|so|now|then|made|makes|gave|gives|caused|which|that)\b) [^,;:] ){0,60} $"""
)
#: From a drug with which the words of an effect begin to their end: "Prozac - insomnia", "lithium toxicity".
_OF_ITS_OWN = _words(
    r"""\s* (?:-+|[\u2013\u2014:=>]) \s .*
      |[\s-]+ (?:induced|related|withdrawals?|toxicity|overdose|poisoning|intoxication) \b .*"""
)
#: Between a drug and an effect that it is said to cause.
_CAUSED = _words(
    r"""\b (?:made|makes|making|make|gave|gives|giving|caus(?:e|es|ed|ing)|(?:left|leaves)\sm[ey]|turned|turns
      |led\sto|resulted\sin|triggered|induced|knocked|had\sme|has\sme|brought\son|sent\sme|put\sme\sin) \b"""
)


def causes(text: str, drugs: Sequence[NamedDrug], effect: Span, starts: Sequence[int] = ()) -> Causes:
    """The drugs that the effect is due to, of at least one that the text names; ValueError without any.

    `starts`: of all effects, in order. Drugs with an effect between them are not taken together.
    """
    if not drugs:
        raise ValueError("no drug to choose from")
    before, after = _meant(text, drugs, effect)
    if after and after[0].start == effect.start and _OF_ITS_OWN.match(text, after[0].end, effect.end):
        return Causes((after[0].name,), stated=True)
    if by_words := _by_order(text, before, effect) or _replaced(text, before, effect):
        return Causes((by_words.name,), stated=True)
    if new := _changed_before(text, after, effect):
        return Causes((new.name,), stated=True)
    if after and _is_named_behind(text, before, after[0], effect):
        return Causes(_taken_together(text, after, 0, starts), stated=True)
    for i in reversed(range(len(before))):
        end = before[i].end
        words = text[end : min(effect.start, end + _FAR)]
        if i and (
            _is_against(words)
            or (_is_compared(text, before[i]) and not _SENTENCE_END.search(words))
            or (_is_old(text, before[i - 1], before[i]) and not _is_left(text, words, effect))
            or (_FINE.match(words) and _BREAK.search(words))
            or (
                _is_added(text, before[i - 1], before[i])
                and (_SENTENCE_END.search(words) or not _PURPOSE.fullmatch(words))
            )
        ):
            continue
        is_near = effect.start - end <= _FAR and not _SENTENCE_END.search(words)
        stated = is_near and bool(_CAUSED.search(words)) and i + 1 == len(before)
        return Causes(_taken_together(text, before, i, starts), stated)
    return Causes(_taken_together(text, after, 0, starts), stated=False)


def _meant(text: str, drugs: Sequence[NamedDrug], effect: Span) -> tuple[list[NamedDrug], list[NamedDrug]]:
    """The nearest drugs before and after the start of the effect, in order, without those that the text tells
    the cause from ("A, not B"); all where nothing else is left, or where the effect is the reason for taking
    one instead of another.
    """
    ordered = sorted(drugs)
    at = bisect_left(ordered, effect.start, key=attrgetter("start"))
    before, after = ordered[max(0, at - _MOST - 1) : at], ordered[at : at + _MOST + 1]
    behind = max((d.end for d in before if d.end <= effect.start), default=0)
    if _BECAUSE.search(text[max(behind, effect.start - _NEAR) : effect.start]):
        return before, after
    meant = tuple([d for d in side if not _is_denied(text, d)] for side in (before, after))
    return (meant[0], meant[1]) if any(meant) else (before, after)


def _is_denied(text: str, drug: NamedDrug) -> bool:
    return _NOT.search(text[max(0, drug.start - _NEAR) : drug.start]) is not None


def _is_compared(text: str, drug: NamedDrug) -> bool:
    return _COMPARED.search(text[max(0, drug.start - _NEAR) : drug.start]) is not None


def _by_order(text: str, before: Sequence[NamedDrug], effect: Span) -> NamedDrug | None:
    """The drug that the sentence calls the first or the second one, before or behind the effect."""
    if len({d.name for d in before}) < 2:  # noqa: PLR2004  an order is one of two
        return None
    if _WITH_FORMER.match(text, effect.end):
        return before[0]
    words = _SENTENCE_END.split(text[max(before[-1].end, effect.start - _FAR) : effect.start])[-1]
    former, latter = (max((m.start() for m in p.finditer(words)), default=-1) for p in (_FORMER, _LATTER))
    if former == latter:
        return None
    return before[0] if former > latter else before[-1]


def _replaced(text: str, before: Sequence[NamedDrug], effect: Span) -> NamedDrug | None:
    """The drug that was given up for another because of the effect, or whose effect went away with it."""
    if len(before) < 2:  # noqa: PLR2004  one drug for another
        return None
    old, new = before[-2:]
    change, reason = text[old.end : new.start], text[new.end : effect.start]
    if old.name == new.name or max(len(change), len(reason)) > _FAR or _SENTENCE_END.search(change):
        return None
    switched = _SWITCHED.search(text, max(0, old.start - _NEAR), new.start) and _REPLACED.search(change)
    if not switched or len(_SENTENCE_END.findall(reason)) > 1:
        return None
    return old if _is_left(text, reason, effect) else None


def _is_left(text: str, words: str, effect: Span) -> bool:
    """Whether the effect is the reason for a change of drugs, or went away with it; `words`: between both."""
    is_reason = not _SENTENCE_END.search(words) and _BECAUSE.search(words) is not None
    return is_reason or _WENT.match(text, effect.end) is not None


def _changed_before(text: str, after: Sequence[NamedDrug], effect: Span) -> NamedDrug | None:
    """The drug that the words behind the effect say it began with, when it replaced another one."""
    if len(after) < 2 or after[0].name == after[1].name:  # noqa: PLR2004  one drug for another
        return None
    old, new = after[:2]
    since, change = text[effect.end : old.start], text[old.end : new.start]
    if max(len(since), len(change)) >= _NEAR or _SENTENCE_END.search(since) or _SENTENCE_END.search(change):
        return None
    return new if _SINCE_CHANGE.search(since) and _CHANGED.fullmatch(change) else None


def _is_named_behind(text: str, before: Sequence[NamedDrug], drug: NamedDrug, effect: Span) -> bool:
    """Whether the words behind the effect name the drug as its cause, and no drug is before it in the same
    sentence, unless they stand directly between both.
    """
    words = text[effect.end : drug.start]
    if len(words) >= _NEAR or _SENTENCE_END.search(words) or not _FROM.search(words):
        return False
    last = before[-1].end if before else effect.start
    if _SINCE_BEGUN.fullmatch(words):
        return not _CAUSED.search(text, max(last, effect.start - _FAR), effect.start)
    if _CHANGE.search(words):
        return False
    if not before or _DIRECTLY_FROM.fullmatch(words):
        return True
    if _DIRECTLY_ON.fullmatch(words) and _is_against(text[last : min(effect.start, last + _FAR)]):
        return True
    return bool(
        _SENTENCE_END.search(text, last, effect.start)
        or (_DIRECTLY_WITH.fullmatch(words) and _CLAUSE.search(text, last, effect.start))
    )


def _taken_together(
    text: str, drugs: Sequence[NamedDrug], chosen: int, starts: Sequence[int]
) -> tuple[str, ...]:
    """The names of the chosen drug and of those that stand together with it."""
    first = last = chosen
    while first > max(0, chosen - _MOST) and _are_joined(text, drugs[first - 1], drugs[first], starts):
        first -= 1
    while last + 1 < min(len(drugs), chosen + _MOST) and _are_joined(
        text, drugs[last], drugs[last + 1], starts
    ):
        last += 1
    return tuple(dict.fromkeys(d.name for d in drugs[first : last + 1]))


def _are_joined(text: str, one: NamedDrug, other: NamedDrug, starts: Sequence[int]) -> bool:
    if other.start - one.end >= _NEAR or not _TOGETHER.fullmatch(text, one.end, other.start):
        return False
    if _is_compared(text, one) and not _is_compared(text, other):
        return False
    return bisect_left(starts, one.end) == bisect_left(starts, other.start)


def _is_added(text: str, one: NamedDrug, other: NamedDrug) -> bool:
    """Whether the first drug was added to the second, which was taken before."""
    return (
        other.start - one.end < _NEAR
        and _TO_IT.fullmatch(text, one.end, other.start) is not None
        and _ADDED.search(text[max(0, one.start - _NEAR) : one.start]) is not None
    )


def _is_old(text: str, one: NamedDrug, other: NamedDrug) -> bool:
    """Whether the first drug replaced the second."""
    return (
        other.start - one.end < _NEAR
        and _FROM_OLD.fullmatch(text, one.end, other.start) is not None
        and _TO_NEW.search(text[max(0, one.start - _NEAR) : one.start]) is not None
    )


def _is_against(words: str) -> bool:
    """Whether the words between a drug and an effect say that it is taken for it."""
    return len(words) < _NEAR and bool(_AGAINST.fullmatch(words))
