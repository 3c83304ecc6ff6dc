"""Words of a text with their offsets, in code points of the text that they are in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import attrgetter

from models.types import Expansion, Span

WORD = re.compile(r"\w+|[^\w\s]")
_MARK = re.compile(r"\W")
#: Marks in a row that are read, dots or emoji for example: each is a word for the encoder.
MOST_MARKS = 20


def with_long_forms(text: str, start: int, end: int, expansions: Sequence[Expansion]) -> str:
    """The text from `start` to `end` with the long forms of the acronyms that are wholly in it."""
    part = text[start:end]
    for expansion in sorted(expansions, key=attrgetter("start"), reverse=True):
        if start <= expansion.start and expansion.end <= end:
            part = part[: expansion.start - start] + expansion.long_form + part[expansion.end - start :]
    return part


def words(text: str, within: Span | None = None) -> list[Span]:
    """Spans of words and single punctuation marks in order, of the whole text or of the part `within`.

    Offsets are those of `text` in both cases; white space is in no span.
    """
    matches = WORD.finditer(text, within.start, within.end) if within else WORD.finditer(text)
    return [Span(*m.span()) for m in matches]


def words_to_read(text: str, within: Span | None = None) -> list[Span]:
    """Spans of `words`, but of marks in a row only the first MOST_MARKS."""
    read, n_marks = [], 0
    for word in words(text, within):
        n_marks = n_marks + 1 if _MARK.match(text, word.start) else 0
        if n_marks <= MOST_MARKS:
            read.append(word)
    return read


def word_texts(text: str) -> list[str]:
    """The words of a text as strings, as `Encoder.split` reads them."""
    return WORD.findall(text)
