"""Finding the names of a lexicon in a text, and the nearest spelling."""

from __future__ import annotations

from pathlib import Path
from string import ascii_lowercase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.lexicon import KEPT, NameLexicon, shared
from models.spelling import ANY, added, exchanged, left_out, replaced
from models.text import words
from models.types import Span

LEXICON = NameLexicon(
    {
        "insulin": "insulin",
        "insulin glargine": "insulin glargine",
        "Vitamin D": "cholecalciferol",
        "5-fu": "fluorouracil",
        "st john's wort": "hypericum",
    }
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("nothing here", []),
        ("insulin glargine", ["insulin glargine"]),
        ("insulin, glargine", ["insulin"]),
        ("INSULIN Glargine and Insulin.", ["INSULIN Glargine", "Insulin"]),
        ("insulin\nglargine", ["insulin\nglargine"]),
        ("insulins", []),
        ("vitamin d3 or vitamin D", ["vitamin D"]),
        ("(5-FU)", ["5-FU"]),
        ("\U0001f48a St John's Wort\U0001f48a", ["St John's Wort"]),
    ],
)
def test_the_longest_name_from_the_left_is_found_in_any_case(text: str, expected: list[str]) -> None:
    assert [text[s.start : s.end] for s, _ in LEXICON.find(text)] == expected
    assert NameLexicon({}).find(text) == []


@pytest.mark.parametrize("name", ["aspirin", "", "insulin glar"])
def test_what_is_no_name_of_the_lexicon_has_no_canonical_name(name: str) -> None:
    assert LEXICON.canonical(name) is None


@given(
    st.lists(st.sampled_from(["insulin", "glargine", "Vitamin", "D", "x", "5", "-", "fu", ","]), max_size=20)
)
def test_names_do_not_overlap_and_are_in_the_lexicon_themselves(tokens: list[str]) -> None:
    text = " ".join(tokens)
    end = 0
    for span, canonical in LEXICON.find(text):
        assert span.start >= end
        end = span.end
        assert LEXICON.canonical(text[span.start : span.end]) == canonical
        assert span.start in {w.start for w in words(text)}


def test_a_name_without_another_is_its_own_canonical_name() -> None:
    lexicon = NameLexicon.of(["Dry mouth", "mouth"])
    assert lexicon.find("DRY mouth, mouth") == [(Span(0, 9), "Dry mouth"), (Span(11, 16), "mouth")]
    assert len(lexicon) == 2


def test_a_file_is_read_in_all_ways_asked_for_and_only_the_last_lexicons_are_kept(tmp_path: Path) -> None:
    def upper(path: Path) -> NameLexicon:
        return NameLexicon({name: name.upper() for name in path.read_text(encoding="utf-8").split()})

    def plain(path: Path) -> NameLexicon:
        return NameLexicon.of(path.read_text(encoding="utf-8").split())

    paths = [tmp_path / f"{i}.txt" for i in range(KEPT)]
    for path in paths:
        path.write_text(f"tea {path.name}", encoding="utf-8")
    first = shared(paths[0], plain)
    assert (first.canonical("tea"), shared(paths[0], upper).canonical("tea")) == ("tea", "TEA")
    assert shared(paths[0], plain) is first
    for path in paths[1:]:
        shared(path, plain)
    assert shared(paths[0], plain) is first
    for path in paths:
        shared(path, upper)
    assert shared(paths[0], plain) is not first


def test_the_four_kinds_of_edit_keep_the_first_letter_unless_it_is_asked_for() -> None:
    assert list(exchanged("abcd")) == ["acbd", "abdc"]
    assert list(left_out("abcd")) == ["acd", "abd", "abc"]
    assert set(added("ab")) == {f"a{c}b" for c in ascii_lowercase} | {f"ab{c}" for c in ascii_lowercase}
    assert set(replaced("abc", ANY)) == {f"a{c}c" for c in ascii_lowercase} | {
        f"ab{c}" for c in ascii_lowercase
    }
    assert list(exchanged("abc", 0)) == ["bac", "acb"]
    assert list(replaced("cab", {"c": "ks", "a": "e"}, 0)) == ["kab", "sab", "ceb"]
