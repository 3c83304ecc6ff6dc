"""An acronym in its sentence with the long forms to choose from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from models.acronym import surface_features
from models.text import words
from models.types import Span

#: Words kept on each side of the acronym (m-networks, section 4).
CONTEXT = 60


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
    left, right = text[sentence.start : span.start], text[span.end : sentence.end]
    left_words, right_words = words(left), words(right)
    if len(left_words) > CONTEXT:
        left = left[left_words[-CONTEXT].start :]
    if len(right_words) > CONTEXT:
        right = right[: right_words[CONTEXT - 1].end]
    return Question(left, text[span.start : span.end], right, tuple(long_forms))
