"""What counts as right for a written mention."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.normalization.written import MENTIONS, Mention, figures, nearest_by_letters, read_mentions
from models.terminology import Term
from models.types import Candidate, Coding, Query
from training.common import corpora
from training.common.codings.split import query
from training.common.corpora import GoldCoding

CHOSEN_ON = Path(corpora.__file__).with_name("coded_mentions.tsv")
TERMS = [Term("Nausea", "Nausea", "GI"), Term("Queasy", "Nausea", "GI"), Term("Rash", "Rash", "Skin")]


class Coder:
    """Codes every mention to the same preferred terms."""

    terms = TERMS

    def __init__(self, *pts: str, nil: bool = False) -> None:
        self.coding = Coding(tuple(Candidate(pt, pt, "-", 0.9) for pt in pts), nil)

    def predict(self, batch: Sequence[Query]) -> list[Coding]:
        return [self.coding] * len(batch)


def mention(words: str, *names: str) -> Mention:
    return Mention("lay", GoldCoding(words, words, "", names))


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
    found = figures(coder, [mention("felt queasy", *names)])["lay"]
    assert tuple(found[name] for name in ("named", "right", "right, NIL ignored", "right among 5")) == shares
    assert found["nil"] == coder.coding.nil


def test_the_baseline_takes_the_name_with_the_most_letters_in_common() -> None:
    assert nearest_by_letters(["so queasy", "rashes"], TERMS) == ["Nausea", "Rash"]


@pytest.mark.parametrize(("path", "mentions"), [(MENTIONS, 500), (CHOSEN_ON, 300)])
def test_every_written_mention_stands_in_its_sentence(path: Path, mentions: int) -> None:
    read = read_mentions(path)
    assert len(read) == mentions
    assert {m.style for m in read} == {"clinical", "lay"}
    assert all(m.gold.terms and query(m.gold).surface == m.gold.mention for m in read)


def test_a_mention_elsewhere_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mentions.tsv"
    path.write_text("style\tsentence\tmention\tterms\nlay\tI was sick\trash\tRash\n", encoding="utf-8")
    with pytest.raises(ValueError, match="not in its sentence"):
        read_mentions(path)
