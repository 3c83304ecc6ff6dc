"""One form of a text for language, tokenizers, lexicons and rules, and where each of its characters is in the
text as it was written.

Styled letters (bold, full width, in circles, ligatures) are read as letters, letters and their marks as one
character, look-alikes of Latin letters as these, entities and tags of HTML as what they stand for; invisible
characters in words are left out, but for the blank that some stand for, and so is the middle of runs that no
writer means.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from models.reading_form.characters import character_edits, lookalike_edits
from models.reading_form.edits import Edit
from models.reading_form.markup import markup_edits
from models.reading_form.runs import has_long_run, run_edits
from models.reading_form.separators import separator_edits
from models.types import Span

_STEPS = (markup_edits, separator_edits, character_edits, lookalike_edits, run_edits)
#: One step may make work for another: an escaped entity is an entity. A text that still changes after so many
#: rounds is a hostile one and is read as it is, so that the form of a form is always that form.
_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class ReadingForm:
    """A text as it is read. Offsets are code points."""

    written: str
    text: str
    """The form; equal to `written` where nothing changed."""
    starts: Sequence[int] = ()
    ends: Sequence[int] = ()
    """Of each character of `text` the part of `written` that it stands for; neither ever falls. Empty where
    nothing changed."""

    @property
    def is_written(self) -> bool:
        """Whether the text is read as it is."""
        return not self.starts

    def in_written(self, start: int, end: int) -> Span:
        """The part of the written text that a span of the form stands for."""
        return Span(start, end) if self.is_written else Span(self.starts[start], self.ends[end - 1])

    def in_form(self, start: int, end: int) -> Span:
        """The smallest span of the form that stands for a span of the written text, at least one character.
        It is exact for what `in_written` gave.
        """
        if self.is_written:
            return Span(start, end)
        first = min(bisect_right(self.ends, start), len(self.text) - 1)
        return Span(first, max(bisect_left(self.starts, end), first + 1))

    def changed(self) -> list[Span]:
        """The parts of the written text that are read as something else or not at all, in order."""
        found: list[Span] = []
        if self.is_written:
            return found
        done = 0
        for character, start, end in zip(self.text, self.starts, self.ends, strict=True):
            if start > done:
                _join(found, done, start)
            if end != start + 1 or self.written[start] != character:
                _join(found, start, end)
            done = max(done, end)
        if done < len(self.written):
            _join(found, done, len(self.written))
        return found


def reading_form(text: str) -> ReadingForm:
    """The form of a text; in linear time. Prose in ASCII, and any text of white space and invisible
    characters, is its own form, and so is every form.
    """
    if text.isascii() and "&" not in text and "<" not in text and not has_long_run(text):
        return ReadingForm(text, text)
    draft = _Draft(text, range(len(text)), range(1, len(text) + 1))
    for _ in range(_ROUNDS):
        before = draft
        for step in _STEPS:
            draft = draft.edited(step(draft.text))
        if draft is before:
            break
    else:
        return ReadingForm(text, text)
    if draft.text == text or not draft.text.strip():
        return ReadingForm(text, text)
    return ReadingForm(text, *draft)


def edited(form: ReadingForm, edits: Iterable[Edit]) -> ReadingForm:
    """The form with further edits of its text, which are in text order."""
    if form.is_written:
        draft = _Draft(form.text, range(len(form.text)), range(1, len(form.text) + 1))
    else:
        draft = _Draft(form.text, form.starts, form.ends)
    changed = draft.edited(edits)
    return form if changed is draft else ReadingForm(form.written, *changed)


class _Draft(NamedTuple):
    text: str
    starts: Sequence[int]
    ends: Sequence[int]

    def edited(self, edits: Iterable[Edit]) -> _Draft:
        """With the edits, which are in text order; itself where there are none."""
        text, starts, ends, done = list[str](), list[int](), list[int](), 0
        for start, end, new in edits:
            text += self.text[done:start], new
            starts += self.starts[done:start]
            starts += [self.starts[start]] * len(new)
            ends += self.ends[done:start]
            ends += [self.ends[end - 1]] * len(new)
            done = end
        if not done:
            return self
        text.append(self.text[done:])
        return _Draft("".join(text), [*starts, *self.starts[done:]], [*ends, *self.ends[done:]])


def _join(spans: list[Span], start: int, end: int) -> None:
    """Adds a span, to the last one where they touch."""
    if spans and start <= spans[-1].end:
        start = min(start, spans[-1].start)
        end = max(end, spans.pop().end)
    spans.append(Span(start, end))
