"""Whether a code has the opposite polarity of its mention ("lost weight", Weight increased), by rules.

Mention and preferred term are analysed with the same table, polarity.tsv, whose head describes its kinds.

What is read in numbers ("blood sugar of 45", "from 280 to 160") is put into words first, by measurements.py.

Other words with hyper- and hypo- are more and less of what follows, by its first four letters. What a
preferred term calls increased or decreased counts as a thing in this comparison, although the table lacks it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from models.normalization.measurements import in_words
from models.once import once
from models.rules.notation import FOLDER
from models.tables import read_tsv

MORE, LESS, RELIEF = "more", "less", "relief"
#: Thing to every direction that a text states for it.
Directions = Mapping[str, frozenset[str]]
#: Words that may be between a modifier and a name, and between it and a state or symptom.
_FAR, _NEAR = 3, 2
#: Modifiers that count for a thing, by the kind of its row without the sign.
_COUNTED = {
    "name": frozenset({"more", "rise", "less", "fewer", "not", "cannot"}),
    "name-": frozenset({"more", "rise", "cannot"}),
    "state": frozenset({"less", "fewer", "not", "cannot"}),
    "symptom": frozenset({"fewer", "not"}),
}
_TURNING = frozenset({"less", "fewer", "not", "cannot"})
_NEGATIONS = frozenset({"not", "cannot"})
_MODIFIERS = _TURNING | {"more", "rise", "better"}
#: What a negation makes of the modifier after it.
_NEGATED = {"more": "less", "rise": "less", "less": "more", "fewer": "more", "better": ""}
#: Words that end a clause.
_ENDS = frozenset({
    "after", "also", "and", "because", "but", "cause", "cuz", "from", "or", "plus", "then", "till",
    "until", "when", "while", "with", "yet",
})  # fmt: skip
_PUNCTUATION = re.compile(r"[^\w\s'-]+")
#: British spellings of medical words: -aemia, aesth-, -oea, oedema, oestrogen.
_LIGATURE = re.compile(r"a(?=em|es)|o(?=ea|ed|est)")
#: Words of a preferred term that name no thing.
_FILLERS = frozenset({"a", "an", "blood", "count", "in", "of", "the", "to", "total"})
_PREFIXED = re.compile(r"(hyper|hypo)([a-z]{4})[a-z]*")
#: Letters of the shortest beginning of words in the table.
_SHORTEST = 3
_OPPOSITE = {MORE: LESS, LESS: MORE}


class _Part(NamedTuple):
    """A part of a clause: the number of its first word and that of the one after its last, and its row."""

    start: int
    end: int
    kind: str
    thing: str


def opposes(surface: str, pt: str) -> bool:
    """Whether the preferred term `pt` has the opposite direction of the mention `surface`, or the mention is
    a relief of what `pt` is about. Each must have exactly one direction for the same thing.
    """
    of_term = _term_directions(pt)
    if not of_term:
        return False
    found = _directions(surface, _own_thing(pt))
    return any(_contradicts(found.get(thing, frozenset()), own) for thing, own in of_term.items())


def is_relief(surface: str) -> bool:
    """Whether a mention is the relief of something and names no other thing of the table ("less dizzy")."""
    found = _directions(surface).values()
    return bool(found) and all(directions == {RELIEF} for directions in found)


def _contradicts(mention: frozenset[str], term: frozenset[str]) -> bool:
    if len(mention) != 1 or len(term) != 1:
        return False
    (one,), (other,) = mention, term
    return one == RELIEF or one == _OPPOSITE.get(other)


@lru_cache(maxsize=1 << 14)
def _term_directions(pt: str) -> Directions:
    return _directions(pt, _own_thing(pt))


@lru_cache(maxsize=1 << 14)
def _own_thing(pt: str) -> frozenset[str]:
    """The words of what a preferred term calls increased or decreased, where the table has no such thing;
    none in other preferred terms.
    """
    clauses = _clauses(pt)
    parts = _parts(clauses[0], frozenset()) if len(clauses) == 1 else []
    if not parts or any(p.thing or p.kind not in ("rise", "fewer") for p in parts):
        return frozenset()
    inside = {i for p in parts for i in range(p.start, p.end)}
    words = [w for i, w in enumerate(clauses[0]) if i not in inside and w not in _FILLERS]
    return frozenset(map(_singular, words))


def _directions(text: str, own: frozenset[str] = frozenset()) -> Directions:
    directions: dict[str, set[str]] = {}
    for words in _clauses(text):
        parts = _turned([p for p in _parts(words, own) if p.kind != "skip"])
        things = [p for p in parts if p.thing]
        modifiers: list[set[str]] = [set() for _ in things]
        for part in (p for p in parts if p.kind in _MODIFIERS):
            if (place := _nearest(part, things)) is not None:
                modifiers[place].add(part.kind)
        for thing, found in zip(things, modifiers, strict=True):
            if direction := _direction(thing, found):
                directions.setdefault(thing.thing, set()).add(direction)
    return {thing: frozenset(those) for thing, those in directions.items()}


def _direction(thing: _Part, modifiers: set[str]) -> str | None:
    """MORE, LESS or RELIEF; None without a direction, and for contradictory modifiers."""
    counted = modifiers & _counted(thing)
    if thing.kind.startswith("name") and "better" in modifiers:
        return RELIEF
    if thing.kind.startswith("name") and not counted:
        return None
    turned, negated = bool(counted & _TURNING), bool(counted & _NEGATIONS)
    if thing.kind.startswith("symptom") and turned and not negated:
        return RELIEF
    if counted & {"less", "fewer"} and (negated or "rise" in counted):
        return None
    return LESS if thing.kind.endswith("-") != turned else MORE


def _counted(thing: _Part) -> frozenset[str]:
    return _COUNTED.get(thing.kind) or _COUNTED[thing.kind.rstrip("+-")]


def _nearest(modifier: _Part, things: list[_Part]) -> int | None:
    """The place of the thing that a modifier belongs to: a negation to the next one."""
    distances = []
    for place, thing in enumerate(things):
        follows = thing.start >= modifier.end
        between = thing.start - modifier.end if follows else modifier.start - thing.end
        if follows or modifier.kind not in _NEGATIONS:
            distances.append((between, not follows, place))
    if not distances:
        return None
    between, _, place = min(distances)
    return place if between <= (_FAR if things[place].kind.startswith("name") else _NEAR) else None


def _turned(parts: list[_Part]) -> list[_Part]:
    """The parts with negated modifiers replaced: "can't stop" is more, and "not better" has no direction."""
    turned: list[_Part] = []
    for part in parts:
        before = turned[-1] if turned else None
        if (
            before
            and before.kind in _NEGATIONS
            and part.start - before.end <= _NEAR
            and part.kind in _NEGATED
        ):
            turned.pop()
            if kind := _NEGATED[part.kind]:
                turned.append(_Part(before.start, part.end, kind, ""))
        else:
            turned.append(part)
    return turned


def _clauses(text: str) -> list[list[str]]:
    """The words of each clause."""
    plain = in_words(_LIGATURE.sub("", text.lower().replace("\u2019", "'"))).replace("-", " ")
    clauses: list[list[str]] = [[]]
    for word in _PUNCTUATION.sub(" ; ", plain).split():
        if word == ";" or word in _ENDS:
            clauses.append([])
        else:
            clauses[-1].append(word)
    return [words for words in clauses if words]


def _parts(words: list[str], own: frozenset[str]) -> list[_Part]:
    """The parts of a clause in order; `own`: words that together name one more thing."""
    parts, start, table = [], 0, _table()
    while start < len(words):
        longest = min(table.longest.get(words[start], 1), len(words) - start)
        for end in range(start + longest, start, -1):
            if row := table.row(" ".join(words[start:end])):
                parts.append(_Part(start, end, *row))
                start = end - 1
                break
        start += 1
    places = [i for i, w in enumerate(words) if _singular(w) in own]
    if own and {_singular(words[i]) for i in places} == own:
        parts.append(_Part(places[0], places[-1] + 1, "name", " ".join(sorted(own))))
    return sorted(parts)


def _singular(word: str) -> str:
    return word.removesuffix("s")


class _Table(NamedTuple):
    """The rows of polarity.tsv, each as its kind and thing; modifiers have no thing."""

    exact: dict[str, tuple[str, str]]
    begins: dict[str, tuple[str, str]]
    """by how the words begin"""
    longest: dict[str, int]
    """of the first word of longer expressions, the number of words of the longest"""

    def row(self, text: str) -> tuple[str, str] | None:
        """The row of a word or an expression."""
        if found := self.exact.get(text):
            return found
        for end in range(len(text), max(_SHORTEST - 1, text.rfind(" ") + 1), -1):
            if found := self.begins.get(text[:end]):
                return found
        if text.endswith("n't"):
            return "not", ""
        if prefixed := _PREFIXED.fullmatch(text):
            return ("symptom+" if prefixed[1] == "hyper" else "symptom-"), f"{prefixed[2]}-"
        return None


@once
def _table() -> _Table:
    table = _Table({}, {}, {})
    for kind, thing, words in read_tsv(FOLDER / "polarity.tsv", ("kind", "thing", "words")):
        for text in words.split(", "):
            rows = table.begins if text.endswith("*") else table.exact
            rows[text.removesuffix("*")] = (kind, "" if thing == "-" else thing)
            first, *rest = text.split()
            table.longest[first] = max(table.longest.get(first, 1), 1 + len(rest))
    return table
