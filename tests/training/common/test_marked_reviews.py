"""Stand-off marks of reviews: joined with the corpus, and refused with their line where they do not fit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from models.types import STATUSES
from tests.small_corpora import public_corpora
from training.common.corpora import CorpusError
from training.common.marked_reviews import (
    DRUGLIB,
    PARTS,
    REVIEWS,
    STATUS_OF,
    VAERS,
    DocumentMark,
    Source,
    digest,
    read_marked,
)

TEXT = "No more hives 🙂, but dry mouth"
ROW = {"id": "7", "field": "comments", "digest": digest(TEXT)}
MARKS = [[21, 30, "event"], [8, 13, "relieved"]]


@pytest.fixture
def read(tmp_path: Path) -> Callable[[list[dict[str, Any]]], Any]:
    corpus = tmp_path / REVIEWS
    corpus.parent.mkdir()
    review = {"id": "7", "drug": "zyrtec", "condition": None, "benefits": "", "comments": TEXT}
    corpus.write_text(json.dumps(review) + "\n")

    def marked(rows: list[dict[str, Any]]) -> Any:
        (tmp_path / "test.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
        return read_marked("test", tmp_path, DRUGLIB._replace(folder=tmp_path))

    return marked


def test_marks_are_joined_with_their_text(read: Any) -> None:
    (review,) = read([ROW | {"marks": MARKS}])
    assert review.marks == (DocumentMark(8, 13, "relieved"), DocumentMark(21, 30, "event"))
    assert (review.text, review.drug, review.condition, review.events) == (TEXT, "zyrtec", "", [(21, 30)])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"id": "8"}, "has no text 8/comments"),
        ({"field": "title"}, "has no text 7/title"),
        ({"digest": "0" * 12}, "another one than the marks were made for"),
        ({"marks": [[8, 13, "event"], [12, 15, "event"]]}, "overlap"),
        ({"marks": [[8, 13, "relief"]]}, "label 'relief'"),
        ({"marks": [[21, 99, "event"]]}, "21:99 is no span of a text of 30 characters"),
        ({"marks": [[-3, -1, "event"]]}, "is no span"),
        ({"marks": [[7, 13, "event"]]}, "is no span"),
        ({"marks": [["8", 13, "event"]]}, "is no span"),
        ({"marks": [[8, 13]]}, "unpack"),
        ({"marks": None}, "not iterable"),
    ],
)
def test_a_row_that_does_not_fit_is_named(read: Any, changes: dict[str, Any], reason: str) -> None:
    fitting = ROW | {"field": "benefits", "digest": digest(""), "marks": []}
    with pytest.raises(CorpusError, match=rf"test\.jsonl, line 2: .*{reason}"):
        read([fitting, ROW | {"marks": MARKS} | changes])


def test_a_row_without_a_key_or_said_twice_is_named(read: Any) -> None:
    with pytest.raises(CorpusError, match="line 1: no 'marks'"):
        read([ROW])
    with pytest.raises(CorpusError, match="line 2: 7/comments is there twice"):
        read([ROW | {"marks": []}] * 2)


@pytest.mark.parametrize(("source", "number", "texts"), [(DRUGLIB, 330, 3), (VAERS, 237, 1)])
def test_no_part_holds_a_text_and_no_review_is_in_two(source: Source, number: int, texts: int) -> None:
    reviews: dict[str, set[str]] = {}
    for part in PARTS:
        rows = [json.loads(line) for line in (source.folder / f"{part}.jsonl").read_text().splitlines()]
        reviews[part] = {row["id"] for row in rows}
        assert all(row.keys() == {"id", "field", "digest", "marks"} for row in rows)
        assert {label for row in rows for _, _, label in row["marks"]} <= STATUS_OF.keys()
        assert len(rows) == texts * len(reviews[part])
    assert set(STATUS_OF.values()) <= set(STATUSES)
    second = reviews.pop("second")
    assert sum(map(len, reviews.values())) == len(set().union(*reviews.values())) == number
    assert second <= set().union(*reviews.values())


@pytest.mark.parametrize(("source", "number"), [(DRUGLIB, 1200), (VAERS, 297)])
def test_the_marks_fit_the_corpus(source: Source, number: int) -> None:
    texts = [r for part in PARTS for r in read_marked(part, public_corpora(source.file), source)]
    assert len(texts) == number
