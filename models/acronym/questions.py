"""An acronym in its sentence with the long forms to choose from."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from models.acronym import surface_features
from models.text import WORD, words
from models.types import Span

#: Words kept on each side of the acronym (m-networks, section 4).
CONTEXT = 60
#: Characters that usually have so many words.
_NEAR = 8 * CONTEXT


class MarkedText(NamedTuple):
    """A text and the span of the acronym in it, or of what replaces the acronym."""

    text: str
    start: int
    end: int


class Question(NamedTuple):
    """An acronym between two parts of a sentence, and the long forms to choose from."""

    left: str
    short_form: str
    right: str
    long_forms: tuple[str, ...]

    def anchor(self) -> MarkedText:
        """The sentence as it is."""
        return self.replaced(self.short_form)

    def replaced(self, form: str) -> MarkedText:
        """The sentence with `form` in place of the acronym."""
        start = len(self.left)
        return MarkedText(f"{self.left}{form}{self.right}", start, start + len(form))

    def features(self, count_pieces: surface_features.CountPieces) -> list[list[float]]:
        """(long forms, features): the surface features of each long form in this place."""
        surroundings = surface_features.surroundings(self.left, self.right, self.short_form)
        return surface_features.features(surroundings, self.long_forms, count_pieces)


def question(text: str, span: Span, sentence: Span, long_forms: Sequence[str]) -> Question:
    """The acronym at `span` of `text`, with at most CONTEXT words of its sentence on each side."""
    left = text[_left_end(text, sentence.start, span.start) : span.start]
    found = list(islice(WORD.finditer(text, span.end, sentence.end), CONTEXT + 1))
    right = text[span.end : found[CONTEXT - 1].end() if len(found) > CONTEXT else sentence.end]
    return Question(left, text[span.start : span.end], right, tuple(long_forms))


def _left_end(text: str, start: int, end: int) -> int:
    """Where the last CONTEXT words between `start` and `end` begin. Only as much as has these words is split:
    a long sentence of acronyms would need quadratic time.
    """
    near = end
    while near > start:
        near = max(start, end - 2 * (end - near) - _NEAR)
        # The first of them may be a part of a word.
        found = words(text, Span(near, end))
        if len(found) > CONTEXT:
            return found[-CONTEXT].start
    return start
