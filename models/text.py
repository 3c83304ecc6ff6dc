"""Words of a text with their offsets, in code points of the original text, and what is read of a long one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter

from models.types import Expansion, Mention, Span

#: Stands for the characters of a run that are not read: neither white space nor a letter nor a word.
FILLER = "\ue000"
WORD = re.compile(rf"\w+|[^\w\s{FILLER}]")
_MARK = re.compile(r"\W")
#: Marks in a row that are read, dots or emoji for example: each is a word for the encoder.
MOST_MARKS = 20
#: Runs that no writer means: blanks, a word, marks of one kind, and characters without any blank. Patterns
#: that try each place of a run again need quadratic time for it.
_LONG_RUN = re.compile(r"\s{33,}|(?<!\w)\w{129,}|([^\w\s])\1{64,}|(?<!\S)\S{1025,}")
_BLANKS_LEFT_OUT, _LEFT_OUT = re.compile(rf"(?<=\s){FILLER}+"), re.compile(f"{FILLER}+")
#: Characters at both ends of such a run that are read.
_ENDS = 16


def readable(text: str) -> str:
    """The text as models read it, of the same length: of a run of white space, of letters, of one mark, or of
    anything without white space that is longer than any writer means, only the first and last characters.
    """
    return _LONG_RUN.sub(_shortened, text) if _LONG_RUN.search(text) else text


def as_written(mentions: Sequence[Mention], text: str) -> list[Mention]:
    """The mentions of a text that was read by `readable`, with what they cover in the text itself."""
    return [replace(m, text=text[m.start : m.end]) if FILLER in m.text else m for m in mentions]


def without_filler(text: str) -> str:
    """A part of what `readable` gives, to be shown: an ellipsis where more than blanks is left out."""
    return _LEFT_OUT.sub("\N{HORIZONTAL ELLIPSIS}", _BLANKS_LEFT_OUT.sub("", text))


def with_long_forms(text: str, start: int, end: int, expansions: Sequence[Expansion]) -> str:
    """The text from `start` to `end` with the long forms of the acronyms that are wholly in it."""
    part = text[start:end]
    for expansion in sorted(expansions, key=attrgetter("start"), reverse=True):
        if start <= expansion.start and expansion.end <= end:
            part = part[: expansion.start - start] + expansion.long_form + part[expansion.end - start :]
    return part


def _shortened(run: re.Match[str]) -> str:
    found = run.group()
    return found[:_ENDS] + FILLER * (len(found) - 2 * _ENDS) + found[-_ENDS:]


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
