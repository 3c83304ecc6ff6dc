"""Lists of short forms, of which a tagger makes one mention or none: "N/V/D", "SOB/CP". Each part is one."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from models.normalization.usual_forms import long_forms
from models.once import once
from models.rules.notation import patterns
from models.terminology import term_named
from models.types import ADE, CODED_LABELS, Expansion, Mention, Relation, TaggedText

_SAYS = patterns("short_form_lists")
#: What letters mean beside each other, and the lists of these letters that the table of short forms has with
#: this meaning; others there mean something else ("D/C").
_LETTERS = {"N": "nausea", "V": "vomiting", "D": "diarrhea", "F": "fever", "C": "chills"}
_OF_LETTERS = frozenset(("N/V", "N/V/D", "F/C"))


class _List(NamedTuple):
    parts: list[Expansion]
    """at least two, in order"""
    is_plain: bool
    """whether it is read without a mention"""


class _Made(NamedTuple):
    """A mention that is made, and the number of the one in whose place it is; None without one."""

    mention: Mention
    like: int | None


def with_parts(
    text: str,
    tagged: TaggedText,
    expansions: Sequence[Expansion],
    *,
    clinical: bool = False,
    verbatim: bool = False,
) -> tuple[TaggedText, tuple[Expansion, ...]]:
    """The mentions with an effect for each part of such a list in place of those on the list, with their
    relations; and the expansions with those of the parts. In a post a list of nausea and vomiting is one also
    where no mention is; where the text is a `verbatim` each list is. In a `clinical` sentence the given
    expansions say what parts of several letters mean.
    """
    lists = _lists(text, expansions, clinical=clinical)
    if not lists:
        return tagged, tuple(expansions)
    made: list[_Made] = []
    gone: set[int] = set()
    added: list[Expansion] = []
    for one, own in zip(lists, _mentions_on(lists, tagged.mentions), strict=True):
        if any(tagged.mentions[i].label not in CODED_LABELS for i in own):
            continue
        if own or verbatim or (one.is_plain and not clinical):
            made += [_made(part, tagged.mentions, own) for part in one.parts]
            gone.update(own)
            added += [part for part in one.parts if part not in expansions]
    if not made:
        return tagged, tuple(expansions)
    made += [_Made(m, i) for i, m in enumerate(tagged.mentions) if i not in gone]
    made.sort(key=lambda one: (one.mention.start, one.mention.end, one.mention.label))
    ordered = sorted([*expansions, *added], key=lambda e: (e.start, e.end))
    return TaggedText(tuple(m for m, _ in made), tuple(_relations(tagged.relations, made))), tuple(ordered)


def _made(part: Expansion, mentions: Sequence[Mention], own: Sequence[int]) -> _Made:
    """The mention of a part: like the last of those on its list that begins before its end."""
    if not own:
        return _Made(Mention(part.start, part.end, part.short_form, ADE, 1.0), None)
    like = max((i for i in own if mentions[i].start < part.end), default=own[0])
    return _Made(replace(mentions[like], start=part.start, end=part.end, text=part.short_form), like)


def _relations(relations: Sequence[Relation], made: Sequence[_Made]) -> Iterator[Relation]:
    """The relations between the mentions that are made, of each part those of the mention it stands for."""
    places: dict[int | None, list[int]] = {}
    for place, one in enumerate(made):
        places.setdefault(one.like, []).append(place)
    for relation in relations:
        for tail in places[relation.tail]:
            yield replace(relation, head=places[relation.head][0], tail=tail)


def _mentions_on(lists: Sequence[_List], mentions: Sequence[Mention]) -> list[list[int]]:
    """The numbers of the mentions that share characters with each list."""
    starts, ends = [one.parts[0].start for one in lists], [one.parts[-1].end for one in lists]
    on: list[list[int]] = [[] for _ in lists]
    for i, mention in enumerate(mentions):
        for place in range(bisect_right(ends, mention.start), bisect_left(starts, mention.end)):
            on[place].append(i)
    return on


def _lists(text: str, expansions: Sequence[Expansion], *, clinical: bool) -> list[_List]:
    """The lists of a text each part of which is known to be an effect."""
    found = list(_SAYS["list"].finditer(text))
    given = {(e.start, e.end): e for e in expansions} if found else {}
    made = []
    for match in found:
        parts = list(_SAYS["part"].finditer(text, *match.span()))
        known = [_letter(parts, i) or _part(part, given, clinical=clinical) for i, part in enumerate(parts)]
        if all(known):
            whole = [part for part in known if part]
            made.append(_List(whole, _SAYS["plain"].fullmatch(match.group()) is not None))
    return made


def _letter(parts: Sequence[re.Match[str]], number: int) -> Expansion | None:
    """What a letter means by the letters beside it."""
    first, after = number, number + 1
    while first and len(parts[first - 1].group()) == 1:
        first -= 1
    while after < len(parts) and len(parts[after].group()) == 1:
        after += 1
    letters = [part.group().upper() for part in parts[first:after]]
    if not 1 < len(set(letters)) == len(letters) or not _LETTERS.keys() >= set(letters):
        return None
    run = "/".join(letters)
    return _expansion(parts[number], _LETTERS[letters[number - first]]) if run not in _others() else None


def _part(
    part: re.Match[str], given: Mapping[tuple[int, int], Expansion], *, clinical: bool
) -> Expansion | None:
    """What a part of several letters means: by an expansion, in a post what it usually means."""
    if expansion := given.get(part.span()):
        return expansion if term_named(expansion.long_form) else None
    long_form = None if clinical else _usual().get(part.group().upper())
    return _expansion(part, long_form) if long_form else None


def _expansion(part: re.Match[str], long_form: str) -> Expansion:
    return Expansion(*part.span(), part.group(), long_form, 1.0, "dictionary")


@once
def _others() -> frozenset[str]:
    """Lists of letters in capitals that mean something else."""
    return frozenset(short.upper() for short in long_forms() if "/" in short) - _OF_LETTERS


@once
def _usual() -> dict[str, str]:
    """The only long form of each short form of several letters, or the usual one, where it is an effect."""
    return {
        short: form
        for short, forms in long_forms().items()
        for form, word in forms.items()
        if len(short) > 1 and (len(forms) == 1 or word == "usual") and term_named(form)
    }
