"""Marks of readers in reviews of Druglib.com (Graesser et al. 2018) and in reports of VAERS, stand-off: the
files name texts by id and field and hold no text; they are joined with the corpus where that is.

training/data/marked_reviews/README.md has the guideline.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

from models.types import HYPOTHETICAL, NEGATED, NO_EVENT, OTHER, OWN, RELIEVED, Stated
from training.common.corpora import CorpusError, in_form, json_lines

FOLDER = Path(__file__).parents[1] / "data" / "marked_reviews"
REVIEWS = "reviews/druglib.jsonl"
#: `second` are texts of the other parts as a second reader marked them.
Part = Literal["development", "test", "recipe", "second"]
PARTS: tuple[Part, ...] = ("development", "test", "recipe", "second")


class Source(NamedTuple):
    """A corpus whose texts are marked."""

    file: str
    """below the folder of the corpora: a row for each review or report"""
    fields: tuple[str, ...]
    """its texts"""
    drug: str
    """the field with the medicine"""
    condition: str = ""
    """the field with what that is for"""
    folder: Path = FOLDER
    """of the marks, a file for each part"""


DRUGLIB = Source(REVIEWS, ("benefits", "side_effects_text", "comments"), "drug", "condition")
#: Narratives of what happened after a vaccine. They are in the public domain.
VAERS = Source("vaers/reports.jsonl", ("text",), "vaccine", folder=FOLDER.with_name("marked_reports"))
#: As the splits of evaluations name them.
SOURCES = {"reviews": DRUGLIB, "reports": VAERS}
#: Each label with the status that a tagger or a judge should give such a mention.
STATUS_OF = {
    "event": OWN,
    "withdrawal": OWN,
    "relieved": RELIEVED,
    "wanted": RELIEVED,
    "indication": "indication",
    "denied": NEGATED,
    "hypothetical": HYPOTHETICAL,
    "other": OTHER,
    "ineffective": NO_EVENT,
}


@dataclass(frozen=True, slots=True)
class DocumentMark:
    """A mention at `start:end` (code points) of its text; `label` is one of STATUS_OF."""

    start: int
    end: int
    label: str

    @property
    def is_event(self) -> bool:
        """Whether it is harm that the writer had."""
        return STATUS_OF[self.label] == OWN


@dataclass(frozen=True, slots=True)
class MarkedDocument:
    """A field of a review, or a report, with the medicine and the condition that it is about."""

    id: str
    field: str
    text: str
    drug: str
    condition: str
    marks: tuple[DocumentMark, ...]
    """in text order, without overlap; the same complaint as often as the text names it"""

    @property
    def stated(self) -> Stated:
        """What the source states beside the text."""
        return Stated((self.drug,) if self.drug else (), self.condition or None)

    @property
    def events(self) -> list[tuple[int, int]]:
        """The spans of the writer's events."""
        return [(m.start, m.end) for m in self.marks if m.is_event]


def digest(text: str) -> str:
    """By which a row of marks knows the text that it was made for: 12 hexadecimal digits of SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def read_marked(part: Part, data: Path, source: Source = DRUGLIB) -> list[MarkedDocument]:
    """The marked texts of a part, in the order of the file; texts without a mark too.

    `data` has the corpus. Raises CorpusError, with the line, for marks that do not fit it: an unknown review,
    another text, a span outside of it, an overlap or an unknown label.
    """
    corpus, path = reviews_by_id(data / source.file), source.folder / f"{part}.jsonl"
    reviews, seen = [], set()
    for number, line in json_lines(path):
        try:
            review = _joined(json.loads(line), corpus, source)
        except (ValueError, KeyError, TypeError) as error:
            raise CorpusError(f"{path}, line {number}: {_reason(error)}") from None
        if (review.id, review.field) in seen:
            raise CorpusError(f"{path}, line {number}: {review.id}/{review.field} is there twice")
        seen.add((review.id, review.field))
        reviews.append(review)
    return reviews


def _reason(error: Exception) -> str:
    return f"no {error}" if isinstance(error, KeyError) else str(error)


def reviews_by_id(path: Path) -> dict[str, dict[str, Any]]:
    """The reviews of the corpus as they are. Raises CorpusError."""
    with in_form(path):
        return {str(row["id"]): row for _, line in json_lines(path) for row in [json.loads(line)]}


def _joined(row: dict[str, Any], corpus: dict[str, dict[str, Any]], source: Source) -> MarkedDocument:
    """Raises ValueError or KeyError with what does not fit."""
    id_, field = row["id"], row["field"]
    if id_ not in corpus or field not in source.fields:
        raise ValueError(f"the corpus has no text {id_}/{field}")
    review = corpus[id_]
    text = review[field] or ""
    if digest(text) != row["digest"]:
        raise ValueError(f"the text {id_}/{field} of the corpus is another one than the marks were made for")
    marks = tuple(sorted(_marks(row["marks"], text), key=lambda m: m.start))
    if any(left.end > right.start for left, right in pairwise(marks)):
        raise ValueError(f"marks of {id_}/{field} overlap")
    condition = review[source.condition] if source.condition else None
    return MarkedDocument(id_, field, text, review[source.drug] or "", condition or "", marks)


def _marks(rows: list[list[Any]], text: str) -> Iterator[DocumentMark]:
    for start, end, label in rows:
        if label not in STATUS_OF:
            raise ValueError(f"label {label!r}: {', '.join(STATUS_OF)}")
        is_span = isinstance(start, int) and isinstance(end, int) and 0 <= start < end <= len(text)
        if not is_span or text[start:end] != text[start:end].strip():
            raise ValueError(f"{start}:{end} is no span of a text of {len(text)} characters")
        yield DocumentMark(start, end, label)
