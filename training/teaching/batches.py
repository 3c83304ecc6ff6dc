"""The files of the teaching corpus: one author batch each, as a whole in training or held out."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal, NamedTuple

from training.common import DATA
from training.common.corpora import ENCODING, in_form
from training.teaching.markup import MarkedText, MarkupError, parse

Kind = Literal["posts", "clinical", "questions", "phrases", "acronyms", "idioms"]
Part = Literal["train", "held_out"]
PARTS: tuple[Part, Part] = ("train", "held_out")
#: Ids of the corpus' texts begin so.
ID = "teaching-"
FOLDER = DATA / "teaching"
#: Suffix of the files of each kind, which are in a folder with the name of the kind.
SUFFIX: dict[Kind, str] = {
    "posts": ".txt",
    "clinical": ".txt",
    "questions": ".jsonl",
    "phrases": ".tsv",
    "acronyms": ".tsv",
    "idioms": ".tsv",
}
MARKED: tuple[Kind, Kind] = ("posts", "clinical")
QUESTION_KINDS = (
    "can_cause",
    "interaction",
    "dose_or_how_to_take",
    "stop_or_switch",
    "treatment",
    "cause",
    "diagnosis_or_test",
    "prognosis",
    "inheritance",
    "pregnancy_or_breastfeeding",
    "diet_or_lifestyle",
    "cost_or_access",
    "side_effect_management",
    "information",
    "who_to_see",
    "vaccine",
    "ingredient_or_storage",
    "other",
)


@dataclass(frozen=True, slots=True)
class Question:
    """A consumer's message, the short question that it asks, and its kind."""

    question: str
    summary: str
    kind: str


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words of a lay person for a preferred term."""

    pt: str
    phrase: str


@dataclass(frozen=True, slots=True)
class AcronymContext:
    """A sentence in which an acronym stands for a long form that is not in it."""

    short_form: str
    long_form: str
    text: str


class Use(NamedTuple):
    """A sentence with an expression: what is before it, its words there, and what is after it."""

    before: str
    words: str
    after: str

    @property
    def text(self) -> str:
        return self.put(self.words)

    def put(self, words: str) -> str:
        """The sentence with other words in place of the expression."""
        return f"{self.before}{words}{self.after}"


@dataclass(frozen=True, slots=True)
class Idiom:
    """An idiom, and sentences in which its words are meant as an idiom and literally."""

    expression: str
    gloss: str
    """plain words for the literal sense"""
    figurative: tuple[tuple[Use, str], ...]
    """sentences with plain words for the idiomatic sense that fit there"""
    literal: tuple[Use, ...]

    def texts(self) -> list[str]:
        """All sentences, without marks."""
        return [use.text for use in (*(use for use, _ in self.figurative), *self.literal)]


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a file that is not empty."""

    kind: Kind
    file: str
    number: int
    """from 1"""
    content: str

    @property
    def place(self) -> str:
        return f"{self.file}, line {self.number}"

    @property
    def id(self) -> str:
        return f"{ID}{self.file.partition('.')[0]}-{self.number}"


def held_out(file: str) -> bool:
    """Whether the file of that name is kept from training. About a tenth of all names are; a name decides
    alone, so that new files move no other one.
    """
    return hashlib.sha256(f"teaching {file}".encode()).digest()[0] % 10 == 0


def lines(kind: Kind, part: Part | None = None, folder: Path = FOLDER) -> Iterator[Line]:
    """The lines of all files of a kind, or of a part of the files, in the order of their names."""
    for path in sorted((folder / kind).glob(f"*{SUFFIX[kind]}")):
        if part is None or held_out(path.name) == (part == "held_out"):
            yield from read(kind, path)


def read(kind: Kind, path: Path) -> Iterator[Line]:
    """The lines of one file, without a byte order mark. Raises CorpusError where it is not UTF-8."""
    with in_form(path):
        text = path.read_text(encoding=ENCODING)
    for number, content in enumerate(text.split("\n"), 1):
        if content.strip():
            yield Line(kind, path.name, number, content)


def marked(line: Line) -> MarkedText:
    """A post or a clinical sentence. Raises MarkupError with file and line."""
    try:
        return parse(line.content)
    except MarkupError as error:
        raise MarkupError(f"{line.place}: {error}") from None


def question(line: Line) -> Question:
    """Raises MarkupError with file and line where it is no object of the three filled strings, or of a kind
    that is not in QUESTION_KINDS.
    """
    try:
        row = json.loads(line.content)
        found = Question(row["question"], row["summary"], row["kind"])
    except (ValueError, TypeError, KeyError):
        raise MarkupError(f"{line.place}: not an object with question, summary and kind") from None
    if found.kind not in QUESTION_KINDS:
        raise MarkupError(f"{line.place}: no kind {found.kind!r}")
    if not all(isinstance(text, str) and text.strip() for text in (found.question, found.summary)):
        raise MarkupError(f"{line.place}: an empty question or summary")
    return found


def phrase(line: Line) -> Phrase:
    """Raises MarkupError with file and line where it is not a term and a phrase separated by a tab."""
    pt, _, words = line.content.partition("\t")
    if "\t" in words or not all(c and c == c.strip() for c in (pt, words)):
        raise MarkupError(f"{line.place}: not a preferred term and a phrase separated by one tab")
    return Phrase(pt, words)


def acronym_context(line: Line) -> AcronymContext:
    """Raises MarkupError with its place where a line is not short form, long form and sentence."""
    cells = line.content.split("\t")
    if len(cells) != len(fields(AcronymContext)) or not all(c and c == c.strip() for c in cells):
        raise MarkupError(f"{line.place}: not a short form, a long form and a sentence separated by tabs")
    return AcronymContext(*cells)


_USE = re.compile(r"([^][]*)\[([^][=]+)\]([^][]*)")
_MEANING = re.compile(r"([^][]*)\[([^][=]+) = ([^][=]+)\]([^][]*)")


def idiom(line: Line) -> Idiom:
    """Raises MarkupError with file and line where it is not an expression, words for its literal sense, two
    sentences `... [words = meaning] ...` and two `... [words] ...`, separated by tabs; `-` for a literal
    sentence that there cannot be.
    """
    cells = line.content.split("\t")
    if len(cells) != len(("expression", "gloss", "figurative", "figurative", "literal", "literal")):
        raise MarkupError(f"{line.place}: not an expression, a gloss and four sentences separated by tabs")
    if not all(c and c == c.strip() for c in cells):
        raise MarkupError(f"{line.place}: an empty cell, or one with spaces around it")
    expression, gloss, *sentences = cells
    figurative = [_MEANING.fullmatch(text) for text in sentences[:2]]
    literal = [_USE.fullmatch(text) for text in sentences[2:] if text != "-"]
    if not all(figurative) or not all(literal):
        raise MarkupError(f"{line.place}: a sentence without exactly one mark of its kind")
    return Idiom(
        expression,
        gloss,
        tuple((Use(m[1], m[2], m[4]), m[3]) for m in figurative if m),
        tuple(Use(m[1], m[2], m[3]) for m in literal if m),
    )
