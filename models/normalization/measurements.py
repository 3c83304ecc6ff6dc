"""Readings of what is measured, in words, for the comparison of directions in polarity.py: "blood sugar of
45" is a low one, and "cholesterol went from 280 to 160" a lower one.

A row of measurements.tsv has the words for what is measured, the values that are low, high and normal in
every unit in use, and what the words are read as ("plts 22" as "platelets low"); between these values, and
where units overlap (a blood sugar of 22), a value says nothing. Of a `pair`, as blood pressure is written,
the first number counts; a percent sign may follow that of a `percent` alone. For a `change` only "from ...
to ..." is read. An arrow between two values ("210 -> 38") and arrows alone have a direction of anything,
and so has a multiple of the upper limit of normal.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from models.once import once
from models.tables import read_tsv

#: Characters behind a mention in which a reading that begins in it may end.
REACH = 40
LOW, HIGH, NORMAL, LOWER, HIGHER = "low", "high", "normal", "lower", "higher"
_NUMBER = r"(?<![\w.,/])(\d{1,3}(?:,\d{3})+|\d{1,7}(?:\.\d{1,3})?)"
#: In front of short names: "12 hr 30" and "don't 40" have none.
_NO_UNIT = r"(?<!\d )(?<![\d'\u2019])"
#: What stands between the words for what is measured and its value.
_LINKS = (
    r"(?:\s+(?:levels?|counts?|readings?|numbers?))?"
    r"(?:\s*[:=<>~]|\s+(?:is|was|were|are|of|at|in the|around|about|only|just|now|low|high|hit|reached|reads?"
    r"|(?:went|got|goes|up|down|dropped|fell|rose|jumped|climbed|spiked) to))*\s*"
)
#: What follows a number that is no value: of "45 minutes" after a meal, of a change "30 points".
_NO_VALUE = (
    r"(?![\w,]*\d|\.\d|\s*-?\s*(?:points?|times|x|days?|weeks?|months?|years?|hours?|hrs?"
    r"|min(?:ute)?s?|pounds?|lbs?|units?|mg(?!\s*/)|to)(?![\w]))"
)
_UNIT = r"(?:\s*(?:lbs?|pounds?|kgs?|kilos?|stone|mg/dl|mmol(?:/l)?|bpm|%|hours?))?"
_SIZE = r"\s+(?:an?\s+)?(?:size\s+)?"
_SECOND = r"(?:\s*(?:/|over)\s*(\d{2,3})(?!\w))?"
_PERCENT = r"(\s*(?:%|percent\b))?"
#: "from 150 lbs to 190", with its two numbers.
_CHANGE = (
    rf"from{_SIZE}{_NUMBER}{_UNIT}(?:\s*(?:/|over)\s*\d+)?(?:\s+(?:up|down|all the way))?"
    rf"\s+to{_SIZE}{_NUMBER}"
    r"(?:\s*/\s*\d+)?(?![\d/]|\s*(?:[ap]\.?m\b|o'clock))"
)
_MOVED = r"(?:went|gone|goes|go|going|changed|moved)"
_OF_WEIGHT = r"(?=\s*(?:lbs?|pounds?|kgs?|kilos?)\b)"
#: A value of a laboratory and the next one, and arrows alone.
_VALUES = re.compile(rf"{_NUMBER}\s?[a-z%/]{{0,8}}\s?(?:\u2192|-{{1,2}}>|=>)\s?{_NUMBER}")
_OF_LIMIT = re.compile(r"\d+(?:\.\d+)?\s?(?:x|times)\s?(?:the\s)?(?:uln|upper limits? of normal)\b", re.I)
_ARROWS = {"\u2191": " increased ", "\u2193": " decreased "}
_TRANSLATED = str.maketrans(_ARROWS)
#: What may follow a value in a mention that is nothing but a reading.
_BEHIND = re.compile(
    r"\s?(?:/?(?:mm\s?hg|bpm|mg/dl|g/d?l|[mun]?mol/l|\u03bcmol/l|m?eq/l|i?u/l|ng/m?l|/min|[kf]|c))?"
    r"(?:\s+(?:on\s+)?(?:ra|room air))?(?:\s+(?:stable|normal|wnl|regular))?[\s.,;)]*",
    re.IGNORECASE,
)
#: Between a number and a unit of weight that is written at once, "20lbs".
_JOINED = re.compile(r"(?<=\d)(?=(?:lbs?|kgs?|kilos?|pounds?)\b)")
#: Without ASCII, other letters ("\u017f", "\u212a") and digits would be taken for those of the words.
_FLAGS = re.IGNORECASE | re.ASCII
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
    value: re.Pattern[str]
    change: re.Pattern[str]


def in_words(text: str) -> str:
    """A text in lower case with "low" or "high" in place of a value, and "lower" or "higher", or "decreased"
    or "increased", in place of a change from one number to another.
    """
    if not any(c.isdigit() or c in _ARROWS for c in text):
        return text
    readings, text = _readings(), " ".join(text.split())
    text = _OF_LIMIT.sub(" increased ", _VALUES.sub(_moved, text))
    text = readings.value.sub(_valued, readings.change.sub(_changed, text))
    return " ".join(_JOINED.sub(" ", text.translate(_TRANSLATED)).split())


def only_reading(text: str) -> str | None:
    """LOW, HIGH or NORMAL, where a text is nothing but a reading with that meaning."""
    found = _readings().value.match(text)
    return _level(found) if found and _BEHIND.fullmatch(text, found.end()) else None


def end_with_reading(text: str, start: int, end: int) -> int:
    """Where the mention at `start:end` ends with the reading that begins in it and goes on behind it: of
    "blood sugar was" in the 40s, behind the 40s; else `end`.
    """
    within, readings = text[start : end + REACH], _readings()
    for pattern, read in ((readings.change, _changed), (readings.value, _level)):
        for found in pattern.finditer(within):
            if found.start() < end - start < found.end() and read(found) not in (None, found[0]):
                return start + found.end()
    return end


def _moved(values: re.Match[str]) -> str:
    before, after = map(_number, values.groups())
    return " ; " if before == after else " increased " if before < after else " decreased "


def _changed(found: re.Match[str]) -> str:
    words, *numbers = found.groups()
    before, after = (_number(n) for n in numbers if n)
    if before == after:
        return found[0]
    return f"{words or ''} {HIGHER if after > before else LOWER} "


def _valued(found: re.Match[str]) -> str:
    level = _level(found)
    return f"{_values(found).words} {level}" if level in (LOW, HIGH) else found[0]


def _level(found: re.Match[str]) -> str | None:
    """What the value of a reading is; None where it says nothing."""
    _, number, thousands, second, percent = found.groups()
    values, value = _values(found), _number(number)
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


def _number(written: str) -> float:
    return float(written.replace(",", ""))


@once
def _readings() -> _Readings:
    values: dict[str, _Values] = {}
    names: list[str] = []
    for words, kind, low, high, normal, read_as in _rows():
        named = words.split(", ")
        names += named
        if kind != "change":
            ranges = _Values(kind, _ranges(low), _ranges(high), _ranges(normal), read_as)
            values |= dict.fromkeys(named, ranges)
    return _Readings(
        values,
        re.compile(
            rf"{_NO_UNIT}\b({_any(list(values))}){_LINKS}{_NUMBER}(k)?{_SECOND}(?:'?s\b)?{_PERCENT}{_NO_VALUE}",
            _FLAGS,
        ),
        re.compile(rf"\b({_any(names)}|{_MOVED})\s+{_CHANGE}|\b{_CHANGE}{_OF_WEIGHT}", _FLAGS),
    )


def _rows() -> list[list[str]]:
    path = Path(__file__).with_name("measurements.tsv")
    columns = ("words", "reading", "low", "high", "normal", "read as")
    return [row[: len(columns)] for row in read_tsv(path, columns)]


def _any(names: list[str]) -> str:
    """A pattern of the names, the longest first."""
    return "|".join(
        r"\s+".join(map(re.escape, name.split())) for name in sorted(names, key=len, reverse=True)
    )


def _ranges(written: str) -> Ranges:
    pairs = (part.split("-") for part in written.split(", ") if part != "-")
    return tuple((float(least), float(most)) for least, most in pairs)
