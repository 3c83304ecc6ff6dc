"""Sentences of a text with their offsets, in code points, by the rules of the table `sentences`."""

from __future__ import annotations

import re
from functools import lru_cache

from models.rules.notation import patterns
from models.types import Span

_SAYS = patterns("sentences")
_LONGEST_ABBREVIATION = len("approx.")
#: Minimum number of characters of a line that was cut for its length.
_LINE = 50


def sentences(text: str) -> list[Span]:
    """Spans of sentences in order, without white space around them; every word of the text is in one."""
    return list(_sentences(text))


@lru_cache(maxsize=64)
def _sentences(text: str) -> tuple[Span, ...]:
    """Cached, because several parts of a stage need them of a text."""
    spans: list[Span] = []
    start = 0
    for end_mark in _SAYS["end"].finditer(text):
        if {"\n", "\r"}.isdisjoint(end_mark.group()) and _goes_on(text, start, end_mark):
            continue
        _append(spans, text, start, end_mark.end())
        start = end_mark.end()
    _append(spans, text, start, len(text))
    return tuple(spans)


def whole_sentences(text: str) -> list[Span]:
    """Spans of `sentences`, but a sentence that a program cut into lines for their length is one span: mail
    and notes have such lines.
    """
    joined: list[Span] = []
    for span in sentences(text):
        if joined and _is_cut(text, joined[-1], span):
            joined[-1] = Span(joined[-1].start, span.end)
        else:
            joined.append(span)
    return joined


def _is_cut(text: str, before: Span, after: Span) -> bool:
    """Whether a sentence is the first part of another: a long line without a mark at its end, and the next
    line begins with a small letter, but is no other item of a list.
    """
    between = text[before.end : after.start]
    if between.strip(" \t") not in ("\n", "\r\n") or not text[after.start].islower():
        return False
    first = _item(text, max(before.start, text.rfind("\n", 0, before.end) + 1))
    if first is not None and first == _item(text, after.start):
        return False
    line = text[max(0, before.end - _LINE) : before.end]
    return len(line) == _LINE and {"\n", "\r"}.isdisjoint(line) and line[-1] not in ".?!:;"


def _item(text: str, at: int) -> str | None:
    """The kind of item that begins there."""
    return next((kind for kind in ("stated", "dose") if _SAYS[kind].match(text, at)), None)


def _goes_on(text: str, start: int, end_mark: re.Match[str]) -> bool:
    """Whether the mark, the first after `start`, belongs to an abbreviation within a sentence."""
    # Only the last characters are searched: a text of abbreviations would need quadratic time.
    before = text[max(start, end_mark.start() - _LONGEST_ABBREVIATION - 1) : end_mark.start()]
    abbreviation = _SAYS["abbreviation"].search(before)
    if abbreviation is None or abbreviation.lastgroup is None:
        return False
    return (
        abbreviation.lastgroup == "always"
        or _SAYS[abbreviation.lastgroup].match(text, end_mark.end()) is not None
    )


def _append(spans: list[Span], text: str, start: int, end: int) -> None:
    piece = text[start:end]
    stripped = piece.strip()
    if stripped:
        first = start + len(piece) - len(piece.lstrip())
        spans.append(Span(first, first + len(stripped)))
