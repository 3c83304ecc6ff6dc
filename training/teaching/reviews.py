"""Marked reviews and reports in the form of the teaching corpus."""

from __future__ import annotations

from pathlib import Path

from models.types import ADE, INDICATION, WITHDRAWAL, Stated
from training.common.marked_reviews import MarkedDocument, Source, read_marked
from training.teaching.markup import NONE, Mark, MarkedText

#: Begins the id of a text in a training set.
ID = "review-"
#: The label of a reader to the label and the flag of the markup.
_MARKS = {
    "event": (ADE, None),
    "withdrawal": (WITHDRAWAL, None),
    "relieved": (INDICATION, "relieved"),
    "wanted": (INDICATION, "wanted"),
    "indication": (INDICATION, None),
    "denied": (ADE, "negated"),
    "hypothetical": (ADE, "hypothetical"),
    "other": (ADE, "other"),
    "ineffective": (NONE, None),
}


def recipe_reviews(data: Path, source: Source) -> tuple[dict[str, MarkedText], dict[str, Stated]]:
    """The recipe's marked texts of a corpus by id, and what is stated beside each. Raises CorpusError."""
    found = read_marked("recipe", data, source)
    reviews = {f"{ID}{r.id}-{r.field}": r for r in found if r.text.strip()}
    stated = {id_: review.stated for id_, review in reviews.items()}
    return {id_: MarkedText(r.text, _marks(r)) for id_, r in reviews.items()}, stated


def _marks(review: MarkedDocument) -> tuple[Mark, ...]:
    return tuple(Mark(m.start, m.end, _MARKS[m.label][0], (), _MARKS[m.label][1]) for m in review.marks)
