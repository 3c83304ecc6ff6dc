"""Names of drug classes among the words of a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.drugs import DrugLexicon
from models.drugs.classes import BUNDLED, DrugClasses, bundled_classes
from models.text import word_texts


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Antibiotics were stopped.", ["Antibiotics"]),
        ("She took an oral contraceptive pill daily.", ["oral contraceptive pill"]),
        ("Steroid-induced psychosis on NSAIDs", ["Steroid", "NSAIDs"]),
        ("A tricyclic antidepressant and two beta blockers", ["tricyclic antidepressant", "beta blockers"]),
        ("The blocker of a receptor", []),
        ("", []),
    ],
)
def test_names_are_found_in_singular_and_plural_the_longest_first(text: str, names: list[str]) -> None:
    words = word_texts(text)
    found = bundled_classes().spans(words)
    assert [" ".join(words[first : last + 1]) for last, first in found.items()] == names


def test_the_bundled_names_are_sorted_unique_and_none_is_a_drug() -> None:
    lines = BUNDLED.read_text(encoding="utf-8").splitlines()[1:]
    assert len(set(map(str.lower, lines))) == len(lines) > 100
    assert lines == sorted(lines, key=str.lower)
    lexicon = DrugLexicon.load()
    drugs = {line for line in lines if lexicon.generic(line) not in (None, line.lower())}
    assert drugs == set()


def test_a_table_without_its_column_is_refused(tmp_path: Path) -> None:
    (tmp_path / "classes.tsv").write_text("class\nstatin\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"classes\.tsv: the header must begin with name"):
        DrugClasses.load(tmp_path / "classes.tsv")
