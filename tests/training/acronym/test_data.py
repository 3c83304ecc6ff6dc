"""Training rows of acronyms: the split, sampling, and texts in which a long form is written out."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.types import Span
from tests.training.acronym.corpus import DICTIONARY
from training.acronym.data import (
    clinical_dictionary,
    extended_dictionary,
    read_parts,
    sample_rows,
    validation_sentences,
    written_rows,
)
from training.acronym.settings import Settings
from training.acronym.written_out import read_texts, rows_of_texts
from training.common.long_forms import key
from training.evaluation.acronym import Row
from training.teaching.batches import AcronymContext


def test_rows_are_shuffled_and_limited() -> None:
    rows = [Row(f"PD {i}", Span(0, 2), ("a", "b"), "a") for i in range(8)]
    drawn = sample_rows(rows, 0)
    assert drawn != rows and sorted(drawn) == sorted(rows)
    assert sample_rows(rows, 0, 4) == drawn[:4]


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
    rows = rows_of_texts(read_texts(tmp_path, held_out=False), clinical_dictionary([])).used
    assert ("MS was known .", "multiple sclerosis") in [(r.text, r.gold) for r in rows]
    assert all("morphine" in " ".join(r.senses) for r in rows if r.short_form == "MS")
    assert not any("held out" in r.text for r in rows)


def test_held_out_abstracts_share_no_text_with_the_others(folder: Path) -> None:
    training, held_out = (rows_of_texts(read_texts(folder, part), DICTIONARY) for part in (False, True))
    assert len(training.defined) == 24
    assert len(held_out.defined) == 16
    assert not {r.text for r in training.used} & {r.text for r in held_out.used}


def test_a_share_of_the_rows_of_each_acronym_validates(folder: Path, contexts: None) -> None:
    for limit in (0, 1):
        rows, held = read_parts(folder, Settings(corpora="sdu22_legal", objective="m", limit=limit))
        assert len(held) == limit or not limit
        assert {r.short_form for r in held} <= {r.short_form for r in rows} == {"PD", "TP", "DD", "PT"}
        assert not {r.text for r in rows} & {r.text for r in held}
    only = read_parts(folder, Settings(corpora="casi", objective="m"))
    assert {r.short_form for part in only for r in part} == {"PD", "DD"}
    every = read_parts(folder, Settings(corpora="written,ade,sdu22_legal,casi", objective="m"))
    texts = {r.text for part in every for r in part}
    assert {"he saw a PD at the zoo", "Day 2 had a PD.", "case 1: PT near p0"} <= texts
    assert "she was NEW for a week" not in texts, "it has one long form"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("intra-arterial", "Intraarterial", True),
        ("Crohn's disease", "crohn diseases", True),
        ("mass", "mas", False),
        ("hypertension", "hypotension", False),
    ],
)
def test_spellings_of_a_long_form_have_one_key(one: str, other: str, same: bool) -> None:
    assert (key(one) == key(other)) is same


KNOWN = {"IA": ["intra-arterial"], "MS": ["multiple sclerosis"]}
WRITTEN_CONTEXTS = [
    AcronymContext("IA", "intraarterial", "The IA line was placed."),
    AcronymContext("IA", "intra-articular", "She had an IA injection."),
    AcronymContext("RA", "rheumatoid arthritis", "Known RA for years."),
]


def test_dictionary_and_rows_grow_by_what_they_have_in_no_spelling() -> None:
    assert extended_dictionary(KNOWN, WRITTEN_CONTEXTS) == {
        "IA": ["intra-arterial", "intra-articular"],
        "MS": ["multiple sclerosis"],
        "RA": ["rheumatoid arthritis"],
    }
    assert KNOWN["IA"] == ["intra-arterial"]
    dictionary = extended_dictionary(KNOWN, WRITTEN_CONTEXTS)
    rows = written_rows(WRITTEN_CONTEXTS, dictionary)
    assert [(r.short_form, r.gold) for r in rows] == [
        ("IA", "intra-arterial"),
        ("IA", "intra-articular"),
        ("RA", "rheumatoid arthritis"),
    ]
    assert rows[0].senses == ("intra-arterial", "intra-articular")


def test_the_sentences_for_validation_have_a_sense_of_the_dictionary() -> None:
    dictionary = {"LFT": ["lung function test", "liver function test"], "CT": ["computed tomography"]}
    rows = validation_sentences(dictionary)
    assert rows
    # CT has one long form only.
    assert {(row.short_form, row.gold) for row in rows} == {("LFT", "liver function test")}
    assert all(row.senses == ("lung function test", "liver function test") for row in rows)
