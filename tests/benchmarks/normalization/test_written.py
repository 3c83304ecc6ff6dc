"""What counts as right for a written mention."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.normalization.written import Mention, figures, nearest_by_letters, read_mentions
from models.terminology import Term
from models.types import Candidate, Coding, Query

TERMS = [Term("Nausea", "Nausea", "GI"), Term("Queasy", "Nausea", "GI"), Term("Rash", "Rash", "Skin")]


class Coder:
    """Codes every mention to the same preferred terms."""

    terms = TERMS

    def __init__(self, *pts: str, nil: bool = False) -> None:
        self.coding = Coding(tuple(Candidate(pt, pt, "-", 0.9) for pt in pts), nil)

    def predict(self, batch: Sequence[Query]) -> list[Coding]:
        return [self.coding] * len(batch)


def mention(words: str, *names: str) -> Mention:
    return Mention("lay", Query(words, 0, len(words), words), names)


@pytest.mark.parametrize(
    ("names", "coder", "shares"),
    [
        (("queasy",), Coder("Nausea"), (1, 1, 1, 1)),
        (("Queasy", "Unknown"), Coder("Rash", "Nausea"), (1, 0, 0, 1)),
        (("Nausea",), Coder("Nausea", nil=True), (1, 0, 1, 1)),
        (("Nausea",), Coder(), (1, 0, 0, 0)),
        (("Unknown",), Coder("Nausea"), (0, 0, 0, 0)),
    ],
)
def test_a_code_is_right_if_it_is_the_preferred_term_of_an_accepted_name(
    names: tuple[str, ...], coder: Coder, shares: tuple[int, ...]
) -> None:
    found = figures(coder, [mention("felt queasy", *names)])
    assert tuple(found[name] for name in ("named", "right", "right, NIL ignored", "right among 5")) == shares
    assert found["nil"] == coder.coding.nil


def test_the_baseline_takes_the_name_with_the_most_letters_in_common() -> None:
    assert nearest_by_letters([mention("so queasy"), mention("rashes")], TERMS) == ["Nausea", "Rash"]


def test_every_written_mention_stands_in_its_sentence() -> None:
    mentions = read_mentions()
    assert {m.style for m in mentions} == {"clinical", "lay"}
    assert all(m.names and m.query.surface for m in mentions)


def test_a_mention_elsewhere_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mentions.tsv"
    path.write_text("style\tsentence\tmention\tterms\nlay\tI was sick\trash\tRash\n", encoding="utf-8")
    with pytest.raises(ValueError, match="substring"):
        read_mentions(path)
