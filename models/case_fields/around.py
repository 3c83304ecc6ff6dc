"""The sentence around a part of a text, and the mentions in it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence, Set
from functools import cached_property
from operator import attrgetter
from typing import NamedTuple

from models.rules.sentences import sentences
from models.text import has_one, lower_words, plain
from models.types import ADE, DRUG, Mention, Span

#: Characters of a sentence before and behind a place that are read.
REACH = 200
#: Mentions that may overlap each other.
_FEW = 3


class Around(NamedTuple):
    """What stands beside `start:end` of a text, up to the ends of its sentence, at most REACH characters."""

    start: int
    end: int
    before: str
    behind: str
    mentions: tuple[Mention, ...]
    """within that part, in text order"""

    @property
    def first(self) -> int:
        """Where `before` begins in the text."""
        return self.start - len(self.before)

    @property
    def last(self) -> int:
        """Where `behind` ends in the text."""
        return self.end + len(self.behind)


class Told:
    """A text with its mentions, of which the sentences are found when the first is asked for."""

    def __init__(self, text: str, mentions: Sequence[Mention]) -> None:
        self.text = text
        self.lower = text.lower()
        self.mentions = sorted(mentions, key=attrgetter("start"))
        self._mention_starts = [m.start for m in self.mentions]
        self._plain = plain(text)

    def has(self, stems: Sequence[str], words: Set[str] = frozenset()) -> bool:
        """Whether one of the stems is in the plain text, or one of the words is a word of it."""
        return has_one(self._plain, stems) or not words.isdisjoint(lower_words(self.text))

    def around(self, start: int, end: int) -> Around:
        """The sentence in which a part begins, around that part."""
        index = bisect_right(self._starts, start) - 1
        sentence = self._sentences[index] if index >= 0 else Span(0, len(self.text))
        first, last = max(sentence.start, start - REACH), max(end, min(sentence.end, end + REACH))
        place = bisect_left(self._mention_starts, first)
        within = tuple(
            m for m in self.mentions[place : bisect_left(self._mention_starts, last)] if m.end <= last
        )
        return Around(start, end, self.text[min(first, start) : start], self.text[end:last], within)

    @cached_property
    def effects(self) -> frozenset[str]:
        """What the effects are called: where one is named again, a tagger may take it for a complaint."""
        return frozenset(m.text.casefold() for m in self.mentions if m.label == ADE)

    def is_in_effect(self, start: int, end: int) -> bool:
        """Whether a mention that is no drug begins up to `end` and ends behind `start`."""
        place = bisect_right(self._mention_starts, end)
        return any(m.label != DRUG and m.end > start for m in self.mentions[max(0, place - _FEW) : place])

    @cached_property
    def _sentences(self) -> list[Span]:
        return sentences(self.text)

    @cached_property
    def _starts(self) -> list[int]:
        return [span.start for span in self._sentences]
