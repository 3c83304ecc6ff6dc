"""Training rows of acronyms: the split by acronym, sampling, and rows of sentences with long forms."""

from __future__ import annotations

from pathlib import Path

from models.types import Span
from tests.training.acronym.corpus import DICTIONARY
from training.acronym.data import (
    read_training,
    read_written_out,
    right_first,
    rows_of_texts,
    sample_rows,
    sample_validation,
    split_by_acronym,
)
from training.evaluation.acronym import Row


def test_validation_has_other_acronyms_than_training_in_all_corpora(folder: Path) -> None:
    one = read_training(folder, "sdu22_scientific")
    other = [Row("a p.d. b", Span(2, 6), ("pain drug", "panda dance"), "pain drug")]
    for seed in range(5):
        training, held_out = split_by_acronym([one, other], 0.4, seed)
        assert len(training) + sum(map(len, held_out)) == len(one) + 1
        names = {r.short_form for r in held_out[0]}
        assert len(names) == 2
        assert not {r.short_form for r in training} & names
        assert bool(held_out[1]) == ("PD" in names) == (other[0] not in training)


def test_each_corpus_has_its_share_of_the_validation_rows() -> None:
    large = [Row(f"PD {i}", Span(0, 2), (str(i), "x"), str(i)) for i in range(50)]
    small = [Row(f"TP {i}", Span(0, 2), (str(i), "x"), str(i)) for i in range(4)]
    rows = sample_validation([large, small], 1, 0, 12)
    assert [r.short_form for r in rows] == ["PD"] * 6 + ["TP"] * 4
    assert len(sample_validation([large, small], 1, 0, 0)) == 54


def test_the_right_long_form_comes_first() -> None:
    row = Row("x is here", Span(0, 1), ("a", "b", "c", "d"), "c")
    assert right_first(row).senses == ("c", "a", "b", "d")


def test_rows_are_limited_per_long_form_and_in_total() -> None:
    rows = [Row(f"PD {i}", Span(0, 2), ("a", "b"), "a" if i < 6 else "b") for i in range(8)]
    assert sorted(r.gold for r in sample_rows(rows, 3, 0)) == ["a", "a", "a", "b", "b"]
    assert len(sample_rows(rows, 0, 0, 4)) == 4
    assert sorted(sample_rows(rows, 0, 0)) == sorted(rows)


def test_long_forms_in_texts_give_rows_and_definitions_lose_their_brackets() -> None:
    rows = rows_of_texts(
        ["He took a pain-drug (PD) and a Plain dose.", "A pain drug (PAD) and only this (ONE)."], DICTIONARY
    )
    (defined,) = rows.defined
    assert (defined.text, defined.gold) == ("He took a PD and a Plain dose.", "pain drug")
    assert defined.text[defined.span.start : defined.span.end] == "PD"
    # The second text abbreviates "pain drug" in another way; an acronym with one long form is not ambiguous.
    (used,) = rows.used
    assert (used.text, used.gold) == ("He took a pain-drug (PD) and a PD.", "plain dose")


def test_a_long_form_matches_with_and_without_the_possessive() -> None:
    dictionary = {"KS": ["Kaposi sarcoma", "Kallmann syndrome"], "CD": ["Crohn's disease", "celiac disease"]}
    rows = rows_of_texts(["He had Kaposi's sarcoma (KS).", "Crohn disease, or Crohn 's disease."], dictionary)
    assert [r.text for r in rows.defined] == ["He had KS."]
    assert [r.text for r in rows.used] == ["CD, or Crohn 's disease.", "Crohn disease, or CD."]


def test_sentences_with_a_long_form_of_the_bundled_dictionary_are_training_rows(tmp_path: Path) -> None:
    (tmp_path / "ade").mkdir()
    (tmp_path / "ade/sentences.json").write_text("[]", encoding="utf-8")
    (tmp_path / "ade/DRUG-AE.rel").write_text("", encoding="utf-8")
    texts = ["12 NEG Multiple sclerosis was known .", "11 NEG Multiple sclerosis was held out ."]
    (tmp_path / "ade/negatives.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    rows = read_training(tmp_path, "ade")
    assert ("MS was known .", "multiple sclerosis") in [(r.text, r.gold) for r in rows]
    assert all("morphine" in " ".join(r.senses) for r in rows if r.short_form == "MS")
    assert not any("held out" in r.text for r in rows)


def test_held_out_abstracts_share_no_text_with_the_others(folder: Path) -> None:
    training, held_out = (read_written_out(folder, DICTIONARY, held_out) for held_out in (False, True))
    assert len(training.defined) == 24
    assert len(held_out.defined) == 16
    assert not {r.text for r in training.used} & {r.text for r in held_out.used}
