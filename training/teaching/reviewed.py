"""Texts that reviewers have decided, as `pvstream reviews export --examples` writes them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from itertools import pairwise
from pathlib import Path

import typer

from models.releases.manifest import TrainingData
from models.types import LABELS
from training.common.corpora import GoldCoding, GoldText, is_text, json_lines
from training.teaching.markup import FLAGS, NONE, Mark, MarkedText
from training.teaching.readers import coded_marks, gold_text

#: Begins the id of a text in a training set.
ID = "reviewed-"


def read_reviewed(path: Path) -> dict[str, MarkedText]:
    """Id to text with its marks, NONE for a rejected event. Raises typer.BadParameter."""
    found = {}
    for number, line in json_lines(path):
        try:
            row = json.loads(line)
            id_, marked = row["id"], _marked(row["text"], row["marks"])
        except (ValueError, KeyError, TypeError) as error:
            raise typer.BadParameter(f"{path}, line {number}: no reviewed text ({error})") from None
        found[f"{ID}{id_}"] = marked
    return found


def reviewed_texts(
    marked: dict[str, MarkedText], *, candidates: bool, without: Collection[str]
) -> list[GoldText]:
    """The texts with their mentions, but for `without`; `candidates` as in `gold_texts`."""
    return [
        gold_text(id_, text, candidates, LABELS) for id_, text in marked.items() if text.text not in without
    ]


def reviewed_codings(marked: dict[str, MarkedText]) -> list[GoldCoding]:
    """The events that were kept with a code, in their texts."""
    return [coding for text in marked.values() for coding in coded_marks(text)]


def reviewed_source(count: int) -> TrainingData:
    """The texts as manifests name them; whose they are only the operator knows."""
    return TrainingData(name=f"reports decided by reviewers, {count} texts", licence="the operator's own")


def _marked(text: str, marks: Iterable[dict[str, object]]) -> MarkedText:
    """The marks in text order; raises ValueError also where two overlap."""
    if not is_text(text):
        raise ValueError("the text is none of whole characters")
    ordered = sorted((_mark(mark, text) for mark in marks), key=lambda mark: mark.start)
    if any(one.end > other.start for one, other in pairwise(ordered)):
        raise ValueError("marks that overlap")
    return MarkedText(text, tuple(ordered))


def _mark(mark: dict[str, object], text: str) -> Mark:
    start, end, label, flag, term = (mark[name] for name in ("start", "end", "label", "flag", "term"))
    numbers = mark["numbers"]
    if not (isinstance(start, int) and isinstance(end, int) and 0 <= start < end <= len(text)):
        raise ValueError("a span outside of the text")
    if label not in {*LABELS, NONE} or flag not in {*FLAGS, None} or not isinstance(numbers, list):
        raise ValueError("a mark of an unknown kind")
    named = [None if value is None else str(value) for value in (flag, term)]
    return Mark(start, end, str(label), tuple(map(int, numbers)), *named)
