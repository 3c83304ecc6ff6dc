"""Mentions that need their context: joined with their texts, and refused where they do not fit."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

import pytest

from models import terminology
from training.common.codings.ambiguous import COLUMNS, FILE, POSTS, part_of, read_ambiguous, unjudged
from training.common.codings.split import query
from training.common.corpora import CorpusError, GoldCoding
from training.common.marked_reviews import REVIEWS, digest

POST = "Numb face, then I felt numb to all of it."
REVIEW = "My lips went numb 🙂."
ROWS = [
    ("zoloft.1", "23", "27", digest(POST), "Emotional numbness|Apathy"),
    ("7/comments", "13", "17", digest(REVIEW), "Hypoaesthesia oral"),
]
ROW = dict(zip(COLUMNS, ROWS[0], strict=True))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    texts = {POSTS: {"id": "zoloft.1", "text": POST}, REVIEWS: {"id": "7", "comments": REVIEW}}
    for name, row in texts.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(json.dumps(row) + "\n")
    return tmp_path


def table(folder: Path, *rows: tuple[str, ...]) -> Path:
    path = folder / "mentions.tsv"
    path.write_text("".join("\t".join(row) + "\n" for row in (COLUMNS, *rows)))
    return path


def test_a_mention_is_read_at_its_place_in_the_whole_text(data: Path) -> None:
    path = table(data, *ROWS)
    golds = [*read_ambiguous("development", data, path), *read_ambiguous("test", data, path)]
    asked = {g.terms: query(g) for g in golds}
    first, second = asked["Emotional numbness", "Apathy"], asked[("Hypoaesthesia oral",)]
    assert (first.text, first.start, first.surface) == (POST, 23, "numb")
    assert (second.text, second.start, second.surface) == (REVIEW, 13, "numb")


@pytest.mark.parametrize(
    "changed",
    [
        ("zoloft.2", *ROWS[0][1:]),
        ("7/benefits", *ROWS[1][1:]),
        ("7/comments", "13", "17", digest("another text"), "Rash"),
        ("zoloft.1", "99", "103", digest(POST), "Rash"),
    ],
)
def test_a_row_that_does_not_fit_is_named(data: Path, changed: tuple[str, ...]) -> None:
    with pytest.raises(CorpusError, match=rf"line 3: no such mention in {changed[0]}"):
        read_ambiguous("test", data, table(data, ROWS[0], changed))


def test_what_is_judged_is_not_learned(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("training.common.codings.ambiguous._rows", lambda path: [(2, ROW)])
    judged = GoldCoding("felt numb", "then I felt numb to all of it .", "zoloft", ("Apathy",))
    others = [
        GoldCoding("numb", "another numb hand", "zoloft", ("Apathy",)),
        GoldCoding("face", "Numb face, then I", "zoloft", ("Face",)),
    ]
    assert unjudged([judged, *others], data) == others
    assert unjudged([judged, *others], data / "elsewhere") == [judged, *others]


def test_the_table_has_no_text_known_terms_and_wordings_with_several_codes() -> None:
    with FILE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert all(tuple(row) == COLUMNS and len(row["digest"]) == 12 for row in rows)
    known = {t.pt for t in terminology.load()}
    assert {t for row in rows for t in row["terms"].split("|")} <= known
    assert len({(row["text"], row["start"]) for row in rows}) == len(rows)
    parts = Counter(part_of(row["text"]) for row in rows)
    assert parts["test"] / len(rows) == pytest.approx(1 / 3, abs=0.07)
    assert len(rows) >= 150
