"""Marked reviews as the teaching corpus has its texts."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.types import ADE, INDICATION, WITHDRAWAL, Stated
from training.common.marked_reviews import DRUGLIB, STATUS_OF, DocumentMark, MarkedDocument, Source
from training.teaching import reviews
from training.teaching.markup import FLAGS, NONE
from training.teaching.reviews import recipe_reviews


def test_labels_of_readers_are_those_of_the_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    text, marks = "", []
    for label in STATUS_OF:
        marks.append(DocumentMark(len(text), len(text) + len(label), label))
        text += f"{label} "
    rows = [
        MarkedDocument("7", "comments", text, "zoloft", "low mood", tuple(marks)),
        MarkedDocument("7", "benefits", "  ", "zoloft", "low mood", ()),
        MarkedDocument("8", "benefits", "fine", "", "", ()),
    ]
    asked: list[str] = []

    def read(part: str, data: Path, source: Source) -> list[MarkedDocument]:
        asked.append(part)
        return rows

    monkeypatch.setattr(reviews, "read_marked", read)
    marked, stated = recipe_reviews(Path(), DRUGLIB)
    assert asked == ["recipe"]
    assert stated == {"review-7-comments": Stated(("zoloft",), "low mood"), "review-8-benefits": Stated()}
    found = {text[m.start : m.end]: (m.label, m.flag) for m in marked["review-7-comments"].marks}
    assert found == {
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
    assert {flag for _, flag in found.values()} <= {*FLAGS, None}
