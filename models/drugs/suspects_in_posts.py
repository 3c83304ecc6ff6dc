"""Rules for posts: which of the drugs that a text names an effect in it is attributed to.

A drug before the effect is its cause, the nearest one first, unless the text says otherwise: a switch ("from
A to B because of ...", "... since I switched from A to B"), an addition ("added A to B"), an order ("the
first one"), a purpose ("B for the ..."), a drug without problems ("B was fine"), or a cause named behind the
effect ("... from B"). Drugs that are taken together are suspected together.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple

from models.rules.notation import patterns
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


_SAYS = patterns("suspects_in_posts")
_SENTENCE_END = _SAYS["sentence_end"]
#: Most characters between what belongs together: two drugs, a drug and its purpose, an effect and its cause.
_NEAR = 60
#: Most characters between a drug and an effect that words say something about: a text may have no full stop.
_FAR = 1000
#: Most drugs on one side of another that count as taken together with it, and most that are looked at on one
#: side of an effect and the next drug: a text may list thousands.
_MOST = 50


def causes(text: str, drugs: Sequence[NamedDrug], effect: Span, starts: Sequence[int] = ()) -> Causes:
    """The drugs that the effect is due to, of at least one that the text names; ValueError without any.

    `starts`: of all effects, in order. Drugs with an effect between them are not taken together.
    """
    if not drugs:
        raise ValueError("no drug to choose from")
    before, after = _meant(text, drugs, effect)
    if after and after[0].start == effect.start and _SAYS["of_its_own"].match(text, after[0].end, effect.end):
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
            or (_SAYS["fine"].match(words) and _SAYS["break"].search(words))
            or (
                _is_added(text, before[i - 1], before[i])
                and (_SENTENCE_END.search(words) or not _SAYS["purpose"].fullmatch(words))
            )
        ):
            continue
        is_near = effect.start - end <= _FAR and not _SENTENCE_END.search(words)
        stated = is_near and bool(_SAYS["caused"].search(words)) and i + 1 == len(before)
        return Causes(_taken_together(text, before, i, starts), stated)
    return Causes(_taken_together(text, after, 0, starts), stated=False)


def is_taken(text: str, drug: NamedDrug) -> bool:
    """Whether the words directly before a drug say that it is or was taken: "on a statin", "after chemo"."""
    return _SAYS["taken"].search(text[max(0, drug.start - _NEAR) : drug.start]) is not None


def _meant(text: str, drugs: Sequence[NamedDrug], effect: Span) -> tuple[list[NamedDrug], list[NamedDrug]]:
    """The nearest drugs before and after the start of the effect, in order, without those that the text tells
    the cause from ("A, not B"); all where nothing else is left, or where the effect is the reason for taking
    one instead of another.
    """
    ordered = sorted(drugs)
    at = bisect_left(ordered, effect.start, key=attrgetter("start"))
    before, after = ordered[max(0, at - _MOST - 1) : at], ordered[at : at + _MOST + 1]
    behind = max((d.end for d in before if d.end <= effect.start), default=0)
    if _SAYS["because"].search(text[max(behind, effect.start - _NEAR) : effect.start]):
        return before, after
    meant = tuple([d for d in side if not _is_denied(text, d)] for side in (before, after))
    return (meant[0], meant[1]) if any(meant) else (before, after)


@lru_cache(maxsize=512)
def _is_denied(text: str, drug: NamedDrug) -> bool:
    return _SAYS["not"].search(text[max(0, drug.start - _NEAR) : drug.start]) is not None


def _is_compared(text: str, drug: NamedDrug) -> bool:
    return _SAYS["compared"].search(text[max(0, drug.start - _NEAR) : drug.start]) is not None


def _by_order(text: str, before: Sequence[NamedDrug], effect: Span) -> NamedDrug | None:
    """The drug that the sentence calls the first or the second one, before or behind the effect."""
    if len({d.name for d in before}) < 2:  # noqa: PLR2004  an order is one of two
        return None
    if _SAYS["with_former"].match(text, effect.end):
        return before[0]
    words = _SENTENCE_END.split(text[max(before[-1].end, effect.start - _FAR) : effect.start])[-1]
    former, latter = (
        max((m.start() for m in p.finditer(words)), default=-1) for p in (_SAYS["former"], _SAYS["latter"])
    )
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
    is_change = _SAYS["switched"].search(text, max(0, old.start - _NEAR), new.start)
    switched = is_change and _SAYS["replaced"].search(change)
    if not switched or len(_SENTENCE_END.findall(reason)) > 1:
        return None
    return old if _is_left(text, reason, effect) else None


def _is_left(text: str, words: str, effect: Span) -> bool:
    """Whether the effect is the reason for a change of drugs, or went away with it; `words`: between both."""
    is_reason = not _SENTENCE_END.search(words) and _SAYS["because"].search(words) is not None
    return is_reason or _SAYS["went"].match(text, effect.end) is not None


def _changed_before(text: str, after: Sequence[NamedDrug], effect: Span) -> NamedDrug | None:
    """The drug that the words behind the effect say it began with, when it replaced another one."""
    if len(after) < 2 or after[0].name == after[1].name:  # noqa: PLR2004  one drug for another
        return None
    old, new = after[:2]
    since, change = text[effect.end : old.start], text[old.end : new.start]
    if max(len(since), len(change)) >= _NEAR or _SENTENCE_END.search(since) or _SENTENCE_END.search(change):
        return None
    return new if _SAYS["since_change"].search(since) and _SAYS["changed"].fullmatch(change) else None


def _is_named_behind(text: str, before: Sequence[NamedDrug], drug: NamedDrug, effect: Span) -> bool:
    """Whether the words behind the effect name the drug as its cause, and no drug is before it in the same
    sentence, unless they stand directly between both.
    """
    words = text[effect.end : drug.start]
    if len(words) >= _NEAR or _SENTENCE_END.search(words) or not _SAYS["from"].search(words):
        return False
    last = before[-1].end if before else effect.start
    if _SAYS["since_begun"].fullmatch(words):
        return not _SAYS["caused"].search(text, max(last, effect.start - _FAR), effect.start)
    if _SAYS["change"].search(words):
        return False
    if not before or _SAYS["directly_from"].fullmatch(words):
        return True
    if _SAYS["directly_on"].fullmatch(words) and _is_against(text[last : min(effect.start, last + _FAR)]):
        return True
    return bool(
        _SENTENCE_END.search(text, last, effect.start)
        or (_SAYS["directly_with"].fullmatch(words) and _SAYS["clause"].search(text, last, effect.start))
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


def _are_joined(text: str, first: NamedDrug, second: NamedDrug, starts: Sequence[int]) -> bool:
    if second.start - first.end >= _NEAR or not _SAYS["together"].fullmatch(text, first.end, second.start):
        return False
    if _is_compared(text, first) and not _is_compared(text, second):
        return False
    return bisect_left(starts, first.end) == bisect_left(starts, second.start)


def _is_added(text: str, first: NamedDrug, second: NamedDrug) -> bool:
    """Whether the first drug was added to the second, which was taken before."""
    return (
        second.start - first.end < _NEAR
        and _SAYS["to_it"].fullmatch(text, first.end, second.start) is not None
        and _SAYS["added"].search(text[max(0, first.start - _NEAR) : first.start]) is not None
    )


def _is_old(text: str, first: NamedDrug, second: NamedDrug) -> bool:
    """Whether the first drug replaced the second."""
    return (
        second.start - first.end < _NEAR
        and _SAYS["from_old"].fullmatch(text, first.end, second.start) is not None
        and _SAYS["to_new"].search(text[max(0, first.start - _NEAR) : first.start]) is not None
    )


def _is_against(words: str) -> bool:
    """Whether the words between a drug and an effect say that it is taken for it."""
    return len(words) < _NEAR and bool(_SAYS["against"].fullmatch(words))
