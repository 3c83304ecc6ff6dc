"""Training rows of acronyms: the split, sampling, and phrases whose initials stand in their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.acronym.surface_features import undotted
from models.types import Span
from tests.training.acronym.corpus import DICTIONARY, rows
from training.acronym.data import (
    clinical_dictionary,
    extended_dictionary,
    read_parts,
    sample_rows,
    sample_validation,
    spellings,
    split_by_acronym,
    validation_sentences,
    with_dictionary_forms,
    written_rows,
)
from training.acronym.phrases import MOST_FORMS, ROWS, phrases, rows_of_phrases
from training.acronym.settings import Settings
from training.acronym.written_out import read_texts, rows_of_texts
from training.common.long_forms import key
from training.evaluation.acronym import Row
from training.teaching.batches import AcronymContext


def test_validation_has_other_acronyms_than_training_in_all_corpora() -> None:
    one = rows()
    other = [Row("a p.d. b", Span(2, 6), ("pain drug", "panda dance"), "pain drug")]
    for seed in range(5):
        training, held_out = split_by_acronym([one, other], 0.4, seed)
        assert len(training) + sum(map(len, held_out)) == len(one) + 1
        names = {r.short_form for r in held_out[0]}
        assert names
        assert not {r.short_form for r in training} & names
        assert bool(held_out[1]) == ("PD" in names) == (other[0] not in training)


def test_each_corpus_has_its_share_of_validation_and_rows_are_limited() -> None:
    large = [Row(f"PD {i}", Span(0, 2), (str(i), "x"), str(i)) for i in range(50)]
    small = [Row(f"TP {i}", Span(0, 2), (str(i), "x"), str(i)) for i in range(4)]
    rows = sample_validation([large, small], 1, 0, 12)
    assert [r.short_form for r in rows] == ["PD"] * 6 + ["TP"] * 4
    limited = [Row(f"PD {i}", Span(0, 2), ("a", "b"), "a" if i < 6 else "b") for i in range(8)]
    assert sorted(r.gold for r in sample_rows(limited, 3, 0)) == ["a", "a", "a", "b", "b"]
    assert len(sample_rows(limited, 0, 0, 4)) == 4
    assert sorted(sample_rows(limited, 0, 0)) == sorted(limited)


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


def test_the_corpora_of_a_run_are_trained_on_or_validate(folder: Path, contexts: None) -> None:
    training, validation = read_parts(folder, Settings(corpora="written,sdu22_legal,ade,casi", rows=0))
    trained, held_out = ({undotted(r.short_form) for r in rows} for rows in (training, validation))
    assert trained and held_out and not trained & held_out
    assert "UNSURED SENSE" not in {form for r in training for form in r.senses}
    for limit in (0, 4):
        settings = Settings(corpora="sdu22_legal", objective="m", limit=limit)
        rows, held = read_parts(folder, settings)
        assert len(held) == limit or not limit
        assert {r.short_form for r in held} <= {r.short_form for r in rows} == {"PD", "TP", "DD", "PT"}
        assert not {r.text for r in rows} & {r.text for r in held}
    only = read_parts(folder, Settings(corpora="casi", objective="m"))
    assert {r.short_form for part in only for r in part} == {"PD", "DD"}


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
    row = Row("an I.A. x", Span(3, 7), ("intraarterial", "x"), "x")
    (wide,) = with_dictionary_forms([row], extended_dictionary(KNOWN, WRITTEN_CONTEXTS))
    assert wide.senses == ("intraarterial", "x", "intra-articular")
    dictionary = extended_dictionary(KNOWN, WRITTEN_CONTEXTS)
    corpus = [Row("an IA x", Span(3, 5), ("INTRA-ARTICULAR", "x"), "x")]
    rows = written_rows(WRITTEN_CONTEXTS, dictionary, spellings(dictionary, corpus))
    assert [(r.short_form, r.gold) for r in rows] == [
        ("IA", "intra-arterial"),
        ("IA", "intra-articular"),
        ("IA", "INTRA-ARTICULAR"),
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


TEXTS = [
    "The acute renal failure was due to gentamicin.",
    "A patient had acute renal failure, and rheumatic fever.",
    "Rheumatic fever and renal failure were reported.",
]


def test_phrases_are_the_ends_of_runs_without_function_words() -> None:
    assert [p.form for p in phrases(TEXTS[0])] == ["renal failure", "acute renal failure"]
    assert [p.initials for p in phrases(TEXTS[0])] == ["RF", "ARF"]
    # Punctuation, digits and double spaces end a run.
    assert [p.form for p in phrases("Red, dry eye of drug-free 2 weeks  rest")] == ["dry eye"]


def test_a_phrase_of_two_texts_with_a_rival_gives_rows_to_choose_from() -> None:
    rows = rows_of_phrases(TEXTS, {"RF": ["rheumatoid factor"], "XY": ["xanthan yoghurt"]}, seed=0)
    assert {r.gold for r in rows} == {"renal failure", "rheumatic fever"}
    for row in rows:
        assert row.short_form == "RF"
        assert set(row.senses) == {"renal failure", "rheumatic fever", "rheumatoid factor"}
        assert row.text in {
            text[: text.lower().find(row.gold)] + "RF" + text[text.lower().find(row.gold) + len(row.gold) :]
            for text in TEXTS
        }
    counts = [sum(r.gold == gold for r in rows) for gold in ("renal failure", "rheumatic fever")]
    assert counts == [ROWS, ROWS]
    assert not rows_of_phrases(TEXTS[:1], {"RF": ["rheumatoid factor"]}, seed=0)
    assert not rows_of_phrases(["dry eye", "a dry eye"], {}, seed=0)


def test_the_right_long_form_is_among_those_that_are_sampled() -> None:
    many = {"DE": [f"dog ear {n}" for n in range(30)]}
    rows = rows_of_phrases(["dry eye", "a dry eye"], many, seed=0)
    assert len(rows) == 2
    assert all(len(r.senses) == MOST_FORMS and r.senses.count("dry eye") == 1 for r in rows)


def test_some_plurals_stand_outside_of_the_initials() -> None:
    texts = [f"The {word} events of day {n}" for n in range(40) for word in ("adverse", "acute")]
    rows = rows_of_phrases(texts, {f"AE{n}": [] for n in range(2)} | {"AE": ["air embolism"]}, seed=1)
    outside = [r for r in rows if r.text[r.span.end :].startswith("s ")]
    assert all(r.gold.endswith("event") for r in outside)
    assert all(r.gold.endswith("events") for r in rows if r not in outside)
    assert {r.text[r.span.start : r.span.end] for r in rows} == {"AE"}


def test_the_plural_that_a_text_had_is_no_wrong_long_form() -> None:
    texts = [f"The {word} of day {n}" for n in range(40) for word in ("adverse events", "acute effects")]
    forms = {"AE": ["air embolism", "adverse events"]}
    rows = [row for seed in range(9) for row in rows_of_phrases(texts, forms, seed)]
    outside = [r for r in rows if r.text[r.span.end :].startswith("s ")]
    assert {r.gold for r in outside} == {"adverse event", "acute effect"}
    for row in outside:
        # Plurals of other phrases, and the dictionary's other long forms, are still wrong ones.
        plurals = {"adverse events", "acute effects"} - {f"{row.gold}s"}
        assert set(row.senses) == {row.gold, "air embolism", *plurals}
    # Where the singular is the only other long form, the plural is written with its own s.
    both = ["an adverse event", "an adverse event again", "the adverse events", "few adverse events"]
    rows = [row for seed in range(9) for row in rows_of_phrases(both, {}, seed)]
    assert {tuple(sorted(row.senses)) for row in rows} == {("adverse event", "adverse events")}
