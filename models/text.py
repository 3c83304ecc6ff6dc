"""Words and sentences with their offsets; every offset counts code points of the original text."""

from __future__ import annotations

import re

from models.types import Span

WORD = re.compile(r"\w+|[^\w\s]")
# A sentence ends at closing punctuation followed by space and at a line break. Abbreviations that end in a
# full stop are common enough in clinical text to be worth naming; cutting after them costs the tagger
# context.
_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+|[\r\n]\s*")
_LONGEST_ABBREVIATION = len("approx.")
_ABBREVIATION = re.compile(
    r"(?:\b(?:dr|mr|mrs|ms|vs|e\.g|i\.e|approx|no|fig|al|etc|st|[a-z])\.)$", re.IGNORECASE
)


def words(text: str, within: Span | None = None) -> list[Span]:
    """Spans of words and single punctuation marks, in order; white space belongs to none.

    Offsets are those of `text`, also where only the words of a part of it are wanted.
    """
    found = WORD.finditer(text, within.start, within.end) if within else WORD.finditer(text)
    return [Span(*m.span()) for m in found]


def word_texts(text: str) -> list[str]:
    """The words of a text as strings, as `Encoder.split` reads them."""
    return [text[w.start : w.end] for w in words(text)]


def sentences(text: str) -> list[Span]:
    """Spans of sentences without the white space around them; together they hold every word of the text."""
    spans: list[Span] = []
    start = 0
    for end_mark in _END.finditer(text):
        # Only the end of what stands before: a text of nothing but abbreviations must not take for ever.
        before = text[max(start, end_mark.start() - _LONGEST_ABBREVIATION - 1) : end_mark.start()]
        if not {"\n", "\r"} & set(end_mark.group()) and _ABBREVIATION.search(before):
            continue
        _append(spans, text, start, end_mark.end())
        start = end_mark.end()
    _append(spans, text, start, len(text))
    return spans


def _append(spans: list[Span], text: str, start: int, end: int) -> None:
    piece = text[start:end]
    stripped = piece.strip()
    if stripped:
        first = start + len(piece) - len(piece.lstrip())
        spans.append(Span(first, first + len(stripped)))
