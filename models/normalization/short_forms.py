"""Short forms in mentions: what they usually mean in a post, by the tables of the acronym stage, which reads
clinical sentences; and lists of them, of which a tagger makes one mention or none: "N/V/D", "SOB/CP". Each
part of a list is one, and so is each name of a term where several are one mention: "confusion and nausea".
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from models.normalization.verbatims import joined_names
from models.once import once
from models.rules.notation import patterns
from models.tables import DATA, read_tsv
from models.terminology import term_named
from models.types import ADE, CODED_LABELS, Expansion, Mention, Relation, TaggedText

#: How often other meanings may be meant where a meaning is the only one that is expected.
_UNEXPECTED = frozenset(("occasional", "rare"))
#: The end of a mention, but for the s of a plural. In small letters most are words.
_SHORT_FORM = re.compile(r"(?<![\w/&+-])(?:[A-Z]{2,6}|[A-Z]/[A-Z])(?=s?$)")
#: Characters on each side of a mention, and the share of capitals among the letters there and in the mention
#: from which on it may be a word that is shouted.
_AROUND, _SHOUTED = 60, 0.6
_SAYS = patterns("short_form_lists")
#: What letters mean beside each other, and the lists of these letters that the table of short forms has with
#: this meaning; others there mean something else ("D/C").
_LETTERS = {"N": "nausea", "V": "vomiting", "D": "diarrhea", "F": "fever", "C": "chills"}
_OF_LETTERS = frozenset(("N/V", "N/V/D", "F/C"))


def usual_expansions(text: str, start: int, end: int) -> tuple[Expansion, ...]:
    """The short form that a mention of a post ends with, where its one expected meaning is a name of the
    terminology: "worse IBS", "OH"; no "ED", which is expected to be a place.
    """
    found = _SHORT_FORM.search(text[start:end])
    long_form = _expected(found.group()) if found else None
    if found is None or long_form is None:
        return ()
    letters = [c for c in text[max(0, start - _AROUND) : end + _AROUND] if c.isalpha()]
    if sum(map(str.isupper, letters)) > _SHOUTED * len(letters) and len(letters) > end - start:
        return ()
    first, last = found.span()
    return (Expansion(start + first, start + last, found.group(), long_form, 1.0, "dictionary"),)


@once
def long_forms() -> dict[str, dict[str, str]]:
    """Of each short form of the tables its long forms, each with how often it is meant, or empty."""
    columns = ("short_form", "long_form", "frequency")
    forms: dict[str, dict[str, str]] = {}
    for short, form, *_ in read_tsv(DATA / "acronyms.tsv", columns[:2]):
        forms.setdefault(short, {})[form] = ""
    for short, form, word in read_tsv(DATA / "acronym_frequencies.tsv", columns):
        forms.setdefault(short, {})[form] = word
    return forms


@once
def _expected(short_form: str) -> str | None:
    forms = long_forms().get(short_form, {})
    expected = [form for form, word in forms.items() if word not in _UNEXPECTED]
    return expected[0] if len(expected) == 1 and term_named(expected[0]) else None


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
    for i, mention in enumerate(tagged.mentions):
        if i not in gone and (named := list(_named_in(text, mention, i))):
            made += named
            gone.add(i)
    if not made:
        return tagged, tuple(expansions)
    made += [_Made(m, i) for i, m in enumerate(tagged.mentions) if i not in gone]
    made.sort(key=lambda one: (one.mention.start, one.mention.end, one.mention.label))
    ordered = sorted([*expansions, *added], key=lambda e: (e.start, e.end))
    return TaggedText(tuple(m for m, _ in made), tuple(_relations(tagged.relations, made))), tuple(ordered)


def _named_in(text: str, mention: Mention, number: int) -> Iterator[_Made]:
    """A mention for each of the several names of terms that one consists of."""
    names = joined_names(text[mention.start : mention.end]) if mention.label in CODED_LABELS else []
    for name in names:
        start, end = mention.start + name.start, mention.start + name.end
        yield _Made(replace(mention, start=start, end=end, text=text[start:end]), number)


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
