"""Words and sentences of a text with their offsets, in code points of the original text."""

from __future__ import annotations

import re

from models.types import Span

WORD = re.compile(r"\w+|[^\w\s]")
_MARK = re.compile(r"\W")
#: Marks in a row that are read, dots or emoji for example: each is a word for the encoder.
MOST_MARKS = 20
# A sentence ends at closing punctuation followed by white space, and at a line break. It does not end after
# the abbreviations below, which are common in clinical text: the tagger would lose context there.
_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+|[\r\n]\s*")
_LONGEST_ABBREVIATION = len("approx.")
_ABBREVIATION = re.compile(
    r"(?:\b(?:dr|mr|mrs|ms|vs|e\.g|i\.e|approx|no|fig|al|etc|st|[a-z])\.)$", re.IGNORECASE
)


def words(text: str, within: Span | None = None) -> list[Span]:
    """Spans of words and single punctuation marks in order, of the whole text or of the part `within`.

    Offsets are those of `text` in both cases; white space is in no span.
    """
    matches = WORD.finditer(text, within.start, within.end) if within else WORD.finditer(text)
    return [Span(*m.span()) for m in matches]


def words_to_read(text: str, within: Span | None = None) -> list[Span]:
    """As `words`, but of marks in a row only the first MOST_MARKS."""
    read, n_marks = [], 0
    for word in words(text, within):
        n_marks = n_marks + 1 if _MARK.match(text, word.start) else 0
        if n_marks <= MOST_MARKS:
            read.append(word)
    return read


def word_texts(text: str) -> list[str]:
    """The words of a text as strings, as `Encoder.split` reads them."""
    return WORD.findall(text)


def sentences(text: str) -> list[Span]:
    """Spans of sentences in order, without white space around them; every word of the text is in one."""
    spans: list[Span] = []
    start = 0
    for end_mark in _END.finditer(text):
        # Only the last characters are searched: a text of abbreviations would need quadratic time.
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
