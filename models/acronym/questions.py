"""An acronym in its sentence with the long forms to choose from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from models.text import WORD
from models.types import Span

#: Words kept on each side of the acronym (m-networks, section 4).
CONTEXT = 60
#: Characters on each side that are read; in English they have so many words. In a text of long words, such as
#: Chinese, each acronym would else have most of it as its context.
_FAR = 1_000
_DOTTED = re.compile(r"(?:\w\.)+\w?")


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


class Scorer(Protocol):
    """Scores the long forms of questions."""

    def scores(self, questions: Sequence[Question]) -> list[list[float]]:
        """Of each question the share of each long form; the shares add up to 1."""


def question(text: str, span: Span, sentence: Span, long_forms: Sequence[str]) -> Question:
    """The acronym at `span` of `text`, with at most CONTEXT words of its sentence on each side."""
    start, end = max(sentence.start, span.start - _FAR), min(sentence.end, span.end + _FAR)
    # The first of them may be a part of a word.
    before = list(WORD.finditer(text, start, span.start))
    behind = list(WORD.finditer(text, span.end, end))
    left = text[before[-CONTEXT].start() if len(before) > CONTEXT else start : span.start]
    right = text[span.end : behind[CONTEXT - 1].end() if len(behind) > CONTEXT else end]
    return Question(left, text[span.start : span.end], right, tuple(long_forms))


def undotted(short_form: str) -> str:
    """The short form without full stops between single letters: PCP for `P.C.P`; `AC.1` stays."""
    return short_form.replace(".", "") if _DOTTED.fullmatch(short_form) else short_form
