"""Words of a text with their offsets, in code points of the text that they are in."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple, Self

from models.types import Expansion, Span

WORD = re.compile(r"\w+|[^\w\s]")
_MARK = re.compile(r"\W")
#: Characters of a text whose words are kept: some 150 bytes a word.
_LONGEST_KEPT = 5_000
#: Marks in a row that are read, dots or emoji for example: each is a word for the encoder.
MOST_MARKS = 20


class PlacedWords(NamedTuple):
    """Words of a text, in order, with their places in it; an object for each would cost more than to find
    them.
    """

    starts: list[int]
    ends: list[int]
    texts: list[str]

    @classmethod
    def of(cls, text: str, spans: Iterable[Span] | None = None) -> Self:
        """The words that `words` finds, or what is at these spans of the text."""
        if spans is None:
            places = [match.span() for match in WORD.finditer(text)]
        else:
            places = [(span.start, span.end) for span in spans]
        return cls([s for s, _ in places], [e for _, e in places], [text[s:e] for s, e in places])

    def part(self, first: int, after: int) -> Self:
        """The words from number `first` up to the one before `after`."""
        return type(self)(self.starts[first:after], self.ends[first:after], self.texts[first:after])

    def add(self, more: PlacedWords) -> None:
        """Puts more words behind these."""
        self.starts.extend(more.starts)
        self.ends.extend(more.ends)
        self.texts.extend(more.texts)

    def span(self, first: int, after: int) -> Span:
        """From the start of the word number `first` to the end of the one before `after`."""
        return Span(self.starts[first], self.ends[after - 1])

    def overlapping(self, span: Span) -> range:
        """The numbers of the words that a span shares characters with."""
        return range(bisect_right(self.ends, span.start), bisect_left(self.starts, span.end))


def plain(text: str) -> str:
    """The text in lower case with single blanks."""
    return " ".join(text.lower().split())


def placed_words(text: str) -> PlacedWords:
    """The words of a text, which nobody may change: those of the last texts of usual length are kept, since
    several parts of a stage need them.
    """
    return _kept_words(text) if len(text) <= _LONGEST_KEPT else PlacedWords.of(text)


@lru_cache(maxsize=128)
def _kept_words(text: str) -> PlacedWords:
    return PlacedWords.of(text)


@lru_cache(maxsize=64)
def lower_words(text: str) -> tuple[str, ...]:
    """The words of a text in lower case. Cached, because several parts of a stage need them of a text."""
    return tuple(map(str.lower, placed_words(text).texts))


def has_one(text: str, stems: Sequence[str]) -> bool:
    """Whether one of the stems is in the text: much quicker than a pattern, which then need not be tried."""
    return any(map(text.__contains__, stems))


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
