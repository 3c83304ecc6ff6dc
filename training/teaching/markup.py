"""The markup of the teaching corpus: a line of text with marks, as this folder's README.md describes them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from models.types import ADE, DRUG, INDICATION, WITHDRAWAL

#: Label of words that name no medical event: idioms, hyperbole, jokes.
NONE = "NONE"
LABELS = {"DRUG": DRUG, "ADE": ADE, "WD": WITHDRAWAL, "IND": INDICATION, "NONE": NONE}
FLAGS = ("negated", "hypothetical", "other", "past", "relieved", "wanted")
_NAMES = {label: name for name, label in LABELS.items()}
_MARK = re.compile(r"\[([^][]*)\]")
_HEAD = re.compile(r"([A-Z]+)(?:#(\d+))?(?:<(\d+(?:,\d+)*))?(?:\?([a-z]+))?")
_TERM = " = "


class MarkupError(ValueError):
    """A line that is not in the markup."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A marked span of the text without markup."""

    start: int
    end: int
    label: str
    """of models.types, or NONE"""
    numbers: tuple[int, ...] = ()
    """a drug's own number; of other marks those of the drugs that they are due to, or for"""
    flag: str | None = None
    """why the mark is no affirmed event of the writer's, one of FLAGS"""
    term: str | None = None
    """preferred term"""


@dataclass(frozen=True, slots=True)
class MarkedText:
    """A text without its markup, and its marks in text order without overlap."""

    text: str
    marks: tuple[Mark, ...]


def parse(line: str) -> MarkedText:
    """A line of a file as text and marks. Raises MarkupError with what is wrong."""
    text, marks, position = "", [], 0
    for match in _MARK.finditer(line):
        text += line[position : match.start()]
        marks.append(_mark(match[1], len(text)))
        text += _words(match[1])[0]
        position = match.end()
    text += line[position:]
    if "[" in text or "]" in text:
        raise MarkupError("a bracket that opens or closes no mark")
    if not text.strip() or text != text.strip():
        raise MarkupError("the text is empty or has white space around it")
    drugs = {n for m in marks if m.label == DRUG for n in m.numbers}
    missing = {n for m in marks for n in m.numbers} - drugs
    if missing:
        raise MarkupError(f"no medicine has the number {min(missing)}")
    return MarkedText(text, tuple(marks))


def _mark(inside: str, start: int) -> Mark:
    head = inside.partition(" ")[0]
    options = _HEAD.fullmatch(head)
    if options is None or options[1] not in LABELS:
        raise MarkupError(f"not a label with its options: {head!r}")
    name, own, due, flag = options.groups()
    if (own and name != "DRUG") or ((due or flag) and name in ("DRUG", "NONE")):
        raise MarkupError(f"an option that {name} does not have: {head!r}")
    if (flag and flag not in FLAGS) or (flag == "wanted" and name != "IND"):
        raise MarkupError(f"no flag {flag!r} of {name}")
    words, term = _words(inside)
    if not words or words != words.strip():
        raise MarkupError(f"no words, or white space around them: {inside!r}")
    if term is not None and (name in ("DRUG", "NONE") or not term or term != term.strip()):
        raise MarkupError(f"a term that is empty or not expected: {inside!r}")
    numbers = tuple(int(n) for n in (own or due or "").split(",") if n)
    return Mark(start, start + len(words), LABELS[name], numbers, flag, term)


def _words(inside: str) -> tuple[str, str | None]:
    words, separator, term = inside.partition(" ")[2].partition(_TERM)
    return words, term if separator else None


def written(marked: MarkedText) -> str:
    """The line that `parse` reads as this text. Raises MarkupError where the markup cannot express it."""
    ends = [0, *(m.end for m in marked.marks)]
    starts = [*(m.start for m in marked.marks), len(marked.text)]
    between = [marked.text[end:start] for end, start in zip(ends, starts, strict=True)]
    line = between[0]
    for mark, rest in zip(marked.marks, between[1:], strict=True):
        line += f"[{_head(mark)} {marked.text[mark.start : mark.end]}"
        line += (f"{_TERM}{mark.term}" if mark.term else "") + "]" + rest
    if any(one.end > other.start for one, other in pairwise(marked.marks)) or parse(line) != marked:
        raise MarkupError(f"the markup cannot express {marked}")
    return line


def _head(mark: Mark) -> str:
    numbers = ",".join(map(str, mark.numbers))
    sign = "#" if mark.label == DRUG else "<"
    return _NAMES[mark.label] + (sign + numbers if numbers else "") + (f"?{mark.flag}" if mark.flag else "")
