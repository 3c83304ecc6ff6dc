"""Readings of what is measured, in words, for the comparison of directions in polarity.py: "blood sugar of
45" is a low one, and "cholesterol went from 280 to 160" a lower one.

The tables are measurements.tsv, the values, and measured_values.tsv, how they are written. An arrow between
two values ("210 -> 38") and arrows alone have a direction of anything, and so has a multiple of the upper
limit of normal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from models.once import once
from models.quantities import number
from models.rules.notation import FOLDER, patterns
from models.tables import read_tsv

#: Characters behind a mention in which a reading that begins in it may end.
REACH = 40
LOW, HIGH, NORMAL, LOWER, HIGHER = "low", "high", "normal", "lower", "higher"
#: Arrows alone.
_ARROWS = {"\u2191": " increased ", "\u2193": " decreased "}
_TRANSLATED = str.maketrans(_ARROWS)
_THOUSANDS = {"k": 1000.0}

Ranges = tuple[tuple[float, float], ...]


class _Values(NamedTuple):
    """The values of what is measured that are low, high and normal, each from one number to another."""

    kind: str
    low: Ranges
    high: Ranges
    normal: Ranges
    words: str
    """what is measured, in the words of the terminology"""


class _Readings(NamedTuple):
    values: dict[str, _Values]
    """by the words for what is measured"""
    says: dict[str, re.Pattern[str]]


def in_words(text: str) -> str:
    """A text in lower case with "low" or "high" in place of a value, and "lower" or "higher", or "decreased"
    or "increased", in place of a change from one number to another.
    """
    if not any(c.isdigit() or c in _ARROWS for c in text):
        return text
    says, text = _readings().says, " ".join(text.split())
    text = says["of_limit"].sub(" increased ", says["values"].sub(_moved, text))
    text = says["value"].sub(_valued, says["change"].sub(_changed, text))
    return " ".join(says["joined"].sub(" ", text.translate(_TRANSLATED)).split())


def only_reading(text: str) -> str | None:
    """LOW, HIGH or NORMAL, where a text is nothing but a reading with that meaning."""
    says = _readings().says
    found = says["value"].match(text)
    return _level(found) if found and says["behind"].fullmatch(text, found.end()) else None


def end_with_reading(text: str, start: int, end: int) -> int:
    """Where the mention at `start:end` ends with the reading that begins in it and goes on behind it: of
    "blood sugar was" in the 40s, behind the 40s; else `end`.
    """
    within, says = text[start : end + REACH], _readings().says
    if not any(map(str.isdigit, within)):
        return end
    for pattern, read in ((says["change"], _changed), (says["value"], _level)):
        for found in pattern.finditer(within):
            if found.start() < end - start < found.end() and read(found) not in (None, found[0]):
                return start + found.end()
    return end


def _moved(values: re.Match[str]) -> str:
    before, after = map(number, values.groups())
    return " ; " if before == after else " increased " if before < after else " decreased "


def _changed(found: re.Match[str]) -> str:
    words, *numbers = found.groups()
    before, after = (number(n) for n in numbers if n)
    if before == after:
        return found[0]
    return f"{words or ''} {HIGHER if after > before else LOWER} "


def _valued(found: re.Match[str]) -> str:
    level = _level(found)
    return f"{_values(found).words} {level}" if level in (LOW, HIGH) else found[0]


def _level(found: re.Match[str]) -> str | None:
    """What the value of a reading is; None where it says nothing."""
    _, written, thousands, second, percent = found.groups()
    values, value = _values(found), number(written)
    if (values.kind == "pair") != bool(second) or (percent and values.kind != "percent"):
        return None
    value *= _THOUSANDS.get((thousands or "").lower(), 1.0)
    for level, ranges, excluded in (
        (LOW, values.low, ">"),
        (HIGH, values.high, "<"),
        (NORMAL, values.normal, "<>"),
    ):
        if not any(c in found[0] for c in excluded) and any(least <= value <= most for least, most in ranges):
            return level
    return None


def _values(found: re.Match[str]) -> _Values:
    return _readings().values[" ".join(found[1].lower().split())]


@once
def _readings() -> _Readings:
    values: dict[str, _Values] = {}
    names: list[str] = []
    columns = ("words", "reading", "low", "high", "normal", "read as")
    for words, kind, low, high, normal, read_as, *_ in read_tsv(FOLDER / "measurements.tsv", columns):
        named = words.split(", ")
        names += named
        if kind != "change":
            ranges = _Values(kind, _ranges(low), _ranges(high), _ranges(normal), read_as)
            values |= dict.fromkeys(named, ranges)
    lists = {"{valued}": _longest_first(values), "{named}": _longest_first(names)}
    return _Readings(values, patterns("measured_values", lists=lists))


def _longest_first(names: Iterable[str]) -> list[str]:
    """Their patterns."""
    return [r"\s+".join(map(re.escape, name.split())) for name in sorted(names, key=len, reverse=True)]


def _ranges(written: str) -> Ranges:
    pairs = (part.split("-") for part in written.split(", ") if part != "-")
    return tuple((float(least), float(most)) for least, most in pairs)
