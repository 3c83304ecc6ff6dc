"""Texts on which a regular expression that tries the same characters again and again needs quadratic time:
runs of every class of characters, and for each pattern runs of what it may repeat itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from re import _constants as code  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

#: One character of each class, and pairs that are no run of one class.
UNITS = (
    " ", "\n", "\t", "a", "A", "1", ",", ".", "-", "'", '"', "(", ")", "/", "_", ":", "é",
    "a ", "A ", "1 ", ", ", ". ", "a, ", "a-", "1/", "and ", " \n",
)  # fmt: skip
#: Repeats of at least so many are taken for unbounded.
_MANY = 40
_OF_CATEGORY = {
    code.CATEGORY_DIGIT: "1",
    code.CATEGORY_SPACE: " ",
    code.CATEGORY_WORD: "a",
    code.CATEGORY_NOT_DIGIT: "a",
    code.CATEGORY_NOT_SPACE: "a",
    code.CATEGORY_NOT_WORD: "(",
}
_REPEATS = (code.MAX_REPEAT, code.MIN_REPEAT, code.POSSESSIVE_REPEAT)


def repeated(unit: str, length: int) -> str:
    """`length` characters of the unit again and again."""
    return (unit * (length // len(unit) + 1))[:length]


def hostile_to(pattern: re.Pattern[str], length: int) -> Iterator[str]:
    """Texts of about `length` characters: runs of each unit, and before each of the pattern's own repeats
    what it wants there, then the repeated part until the length, then something else.
    """
    yield from (repeated(unit, length) for unit in UNITS)
    parsed = parser.parse(pattern.pattern, pattern.flags)
    yield repeated(_sample(parsed) + " ", length)
    for before, unit in dict.fromkeys(_repeats(parsed, "")):
        yield before + repeated(unit, length) + "\x00"
        yield repeated(before + unit, length)


def _repeats(parsed: Sequence[Any], before: str) -> Iterator[tuple[str, str]]:
    """Each unbounded repeat of a pattern: text that matches what is in front of it, and its body."""
    for operation, value in parsed:
        if operation in _REPEATS:
            _, most, body = value
            if most >= _MANY and (unit := _sample(body)):
                yield before, unit
            yield from _repeats(body, before)
        else:
            for inner in _inner(operation, value):
                yield from _repeats(inner, before)
        before += _sample([(operation, value)])


def _inner(operation: Any, value: Any) -> list[Any]:
    if operation is code.SUBPATTERN:
        return [value[-1]]
    if operation is code.ATOMIC_GROUP:
        return [value]
    if operation is code.BRANCH:
        return list(value[1])
    if operation is code.ASSERT:
        return [value[1]]
    return []


def _sample(parsed: Sequence[Any]) -> str:
    """A text that matches, but for assertions and for classes of characters that leave most of them out."""
    return "".join(_one(operation, value) for operation, value in parsed)


def _one(operation: Any, value: Any) -> str:
    if operation is code.LITERAL:
        return chr(value)
    if operation in (code.NOT_LITERAL, code.ANY):
        return "a"
    if operation is code.IN:
        return _of_class(value)
    if operation in _REPEATS:
        return _sample(value[2]) * max(1, int(value[0]))
    inner = [] if operation is code.ASSERT and value[0] > 0 else _inner(operation, value)
    return _sample(inner[0]) if inner else ""


def _of_class(members: Sequence[tuple[Any, Any]]) -> str:
    (first, value), *others = members
    if first is code.NEGATE:
        left_out = [_of_class([member]) for member in others]
        return next(c for c in "a1 (\n" if c not in left_out)
    if first is code.CATEGORY:
        return _OF_CATEGORY[value]
    return chr(value[0] if first is code.RANGE else value)
