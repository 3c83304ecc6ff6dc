"""The filter passes posts in the right language that have a drug's name or an own term as a word."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.drugs import DrugLexicon
from streams.intake.filter import Filter, Terms, drug_names, read_terms

TERMS = Terms(drug_names())


@pytest.mark.parametrize(
    "text",
    [
        "Zoloft's great", "#zoloft", "two zolofts", "(ZOLOFT)", "5-fu today", "valproic\n  acid x",
        "abilfy again", "Zoloft10mg", "10mgzoloft", "#ZoloftSideEffects", "#zoloftproblems", "zoloft_50",
    ],
)  # fmt: skip
def test_a_name_or_a_listed_misspelling_is_found_as_a_word(text: str) -> None:
    assert TERMS.occur_in(text)
    no_words = ("azoloft", "zoloftes", "15-fu", "_zoloft", "", "nothing at all", "zol", "@zoloft2you")
    assert not any(map(TERMS.occur_in, (*no_words, "#zoloftxyz")))
    assert Terms(["red pill", "pill b"]).occur_in("xred pill b"), "behind a longer one that is no word"


def test_every_name_of_the_lexicon_is_found_where_the_lexicon_finds_it() -> None:
    lexicon = DrugLexicon.load()
    names = drug_names()
    assert len(names) > 4000
    missed = [n for n in names if lexicon.find(f"took {n} today") and not TERMS.occur_in(f"took {n} today")]
    assert missed == []


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_own_terms_are_read_from_a_file(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "terms"
    path.write_text("# vapes\n\nElf Bar\njuul\n", encoding=encoding)
    terms = Terms(read_terms(path))
    assert terms.occur_in("my elf bar makes me cough")
    assert not terms.occur_in("vapes")
    with pytest.raises(ValueError, match="cannot be read"):
        read_terms(tmp_path / "missing")
    with pytest.raises(ValueError, match="no term"):
        Terms([" "])


SPANISH = "Desde que tomo zoloft no puedo dormir nada por la noche"


@pytest.mark.parametrize(
    ("text", "stated", "verdict"),
    [
        ("zoloft kills my sleep", None, "passed"),
        ("zoloft kills my sleep", "en-GB", "passed"),
        ("zoloft kills my sleep", "fr", "language"),
        ("my cat kills my sleep", "en", "no_term"),
        (SPANISH, None, "language"),
        ("zoloft kills my sleep", "und", "passed"),
        ("zoloft kills my sleep", "qme", "passed"),
        (SPANISH, "zxx", "language"),
        (SPANISH, "en", "passed"),
        (SPANISH, "es", "language"),
    ],
)
def test_the_stated_language_goes_before_the_found_one(text: str, stated: str | None, verdict: str) -> None:
    assert Filter(TERMS, ("en",)).judge(text, stated) == verdict
    assert Filter(None, ("en",)).judge(text, stated) == "passed"
