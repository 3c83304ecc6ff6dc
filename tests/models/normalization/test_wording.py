"""The words that a mention is coded by: corrected, read as a measurement, and looked up."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest

from models.encoder.model import Encoder
from models.normalization.measurements import end_with_reading, in_words, only_reading
from models.normalization.model import NormalizationModel, spelling_of
from models.normalization.patient_phrases import Phrases
from models.normalization.queries import effect_of_part, query_of
from models.normalization.spelling import Spelling
from models.terminology import Term
from models.types import ADE, Expansion, Mention, Query


def mentions(text: str, *surfaces: str) -> list[Mention]:
    spans = [Mention(text.index(s), text.index(s) + len(s), s, ADE, 0.9) for s in surfaces]
    return sorted(spans, key=lambda m: (m.start, m.end))


def completed(text: str, *surfaces: str) -> list[str]:
    all_ = mentions(text, *surfaces)
    return [effect_of_part(text, m, all_) + m.text for m in all_]


@pytest.mark.parametrize(
    ("text", "surfaces", "expected"),
    [
        (
            "tingling in arms, legs and hands",
            ("tingling in arms", "legs", "hands"),
            ["tingling in arms", "tingling in legs", "tingling in hands"],
        ),
        (
            "bad pain in my right arm, legs and feet, it",
            ("bad pain in my right arm", "legs and feet"),
            ["bad pain in my right arm", "bad pain in legs and feet"],
        ),
        ("swollen ankles & my hands", ("swollen ankles", "my hands"), ["swollen ankles", "swollen my hands"]),
        (
            "Numb lips, tongue, and in my face",
            ("Numb lips", "tongue", "my face"),
            ["Numb lips", "Numb tongue", "Numb my face"],
        ),
        ("tingling in arms, legs ache", ("tingling in arms", "legs ache"), None),
        ("tingling in arms. Legs", ("tingling in arms", "Legs"), None),
        ("nausea, legs", ("nausea", "legs"), None),
        ("tingling in arms but legs", ("tingling in arms", "legs"), None),
        ("tingling in arms, rash, legs", ("tingling in arms", "rash", "legs"), None),
        ("arms, legs", ("arms", "legs"), None),
        ("headache, hands", ("headache", "hands"), None),
        ("backache and stomach", ("backache", "stomach"), None),
        ("sore feet and heartburn", ("sore feet", "heartburn"), None),
    ],
)
def test_a_part_of_the_body_alone_is_coded_with_the_effect_of_its_enumeration(
    text: str, surfaces: tuple[str, ...], expected: list[str] | None
) -> None:
    assert completed(text, *surfaces) == (expected or list(surfaces))


def surface(text: str, own: str, others: Sequence[Mention] = (), expansions: Sequence[Expansion] = ()) -> str:
    effect = mention(text, own)
    mentions = sorted([*others, effect], key=lambda m: m.start)
    return query_of(text, effect, mentions, expansions).surface


def mention(text: str, own: str, label: str = ADE) -> Mention:
    start = text.index(own)
    return Mention(start, start + len(own), own, label, 0.9)


def test_a_query_has_the_long_form_the_value_or_the_effect_that_a_mention_lacks() -> None:
    text = "MTX for RA caused TEN and rash"
    inside = Expansion(18, 21, "TEN", "toxic epidermal necrolysis", 1.0, "text")
    elsewhere = Expansion(8, 10, "RA", "rheumatoid arthritis", 1.0, "text")
    assert surface(text, "TEN", expansions=[elsewhere, inside]) == "toxic epidermal necrolysis"
    assert surface(text, "TEN and rash", expansions=[inside]) == "toxic epidermal necrolysis and rash"
    assert surface(text, "TEN", expansions=[elsewhere]) == "TEN"
    said = "My Blood sugar was in the 40s again"
    assert surface(said, "Blood sugar was") == "Blood sugar was in the 40s"
    assert surface(said, "sugar") == "sugar was in the 40s"
    assert surface("weight went from 150 to 190 lbs", "weight went") == "weight went from 150 to 190"
    assert surface("blood sugar 45 minutes after eating", "blood sugar") == "blood sugar"
    assert surface("rash, blood sugar of 45", "rash") == "rash"
    said = "tingling in arms, legs"
    tingling = mention(said, "tingling in arms")
    assert surface(said, "tingling in arms") == "tingling in arms"
    assert surface(said, "legs", [tingling]) == "tingling in legs"


NAMES = [
    "Nausea", "Nausea aggravated", "Insomnia", "Insomnia exacerbated", "Weird dreams", "Have no appetite",
    "Seizure", "Seizures febrile", "Partial seizures", "Tired all day", "Tired eyes",
]  # fmt: skip
PHRASES = ["felt weird"] * 40 + ["dry heave"] + ["have it"] * 40 + ["wierd dreams", "barfed it"]
PIECES = frozenset({"sweat", "spoon", "bruise", "sob", "tier"})


@pytest.fixture
def spelling() -> Spelling:
    return Spelling(NAMES, PHRASES, PIECES.__contains__)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("Nausae all day", "nausea all day"),
        ("nasea", "nausea"),
        ("nauseea", "nausea"),
        ("nausia", "nausea"),
        ("terrible isomnia!", "terrible insomnia!"),
        ("wierd", "weird"),
        ("seizurs", "seizures"),
        ("tierd", "tired"),
    ],
)
def test_a_word_one_edit_from_a_common_one_is_corrected(spelling: Spelling, written: str, meant: str) -> None:
    assert spelling.corrected(written) == meant


@pytest.mark.parametrize(
    "text",
    [
        "sweated",  # an ending of a word that the encoder has
        "spoons",
        "bruised",
        "bruising",
        "sobbed",
        "barfed",  # the phrases have it, and nothing like it is common
        "WEIRD Dreams",  # right, so its capitals stay
        "nase",  # too short
        "na\u00fbsea",  # not a letter that is exchanged
        "xyzzy",
        "",
    ],
)
def test_other_words_stay_as_they_are(spelling: Spelling, text: str) -> None:
    assert spelling.corrected(text) == text


def test_a_coder_with_spelling_reads_the_corrected_mention(mini: Encoder) -> None:
    terms = [Term(n, n.split()[0], "-") for n in ("Nausea", "Nausea aggravated", "Headache", "Rash")]
    vectors = mini.embed([t.llt for t in terms])
    plain = NormalizationModel(mini, terms, vectors, k=2, nil_below=0.0)
    phrases = Phrases(("so queasy",), ("Nausea",), mini.embed(["so queasy"]), -2.0)
    spelled = NormalizationModel(
        mini, terms, vectors, k=2, nil_below=0.0, spelling=spelling_of(mini, terms, phrases)
    )
    asked = Query("such nuasea today", 5, 11, "nuasea")
    right = dataclasses.replace(asked, surface="nausea")
    assert spelled.predict([asked]) == plain.predict([right]) != plain.predict([asked])
    assert spelled.without({"Rash"}).predict([asked])[0].candidates[0].pt == "Nausea"
    assert (spelled.embed([asked])[0] == plain.embed([right])[0]).all()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("plt 210\u219238", "plt decreased"),
        ("platelets 38,000 -> 210,000", "platelets increased"),
        ("\u2191lfts", "increased lfts"),
        ("blood sugar of 45", "blood sugar low"),
        ("cholesterol went from 280 to 160", "cholesterol went lower"),
        ("blood sugar of 120", "blood sugar of 120"),
        ("5 -> 5 mg", "; mg"),
        ("resp rate 6", "respiratory rate low"),
        ("respirations 44", "respiratory rate high"),
        ("respirations 16", "respirations 16"),
        ("lithium level 2.1", "lithium level high"),
        ("lithium 300 mg", "lithium 300 mg"),
        ("digoxin level of 4.2", "digoxin level high"),
        ("pH 7.1", "ph low"),
        ("pH 7.4", "pH 7.4"),
        ("urine pH 7.1", "urine pH 7.1"),
        ("albumin 1.9", "albumin low"),
        ("albumin 40", "albumin 40"),
        ("microalbumin 2.5", "microalbumin 2.5"),
        ("K 6.4", "potassium high"),
        ("K+ 2.8", "potassium low"),
        ("k 4.1", "k 4.1"),
        ("Na 118", "sodium low"),
        ("plts 22k", "platelets low"),
        ("Hb 61", "hemoglobin low"),
        ("INR >10", "international normalised ratio high"),
        ("SBP <140", "SBP <140"),
        ("SBP 70s", "blood pressure low"),
        ("sats 82%", "oxygen saturation low"),
        ("platelets 20%", "platelets 20%"),
        ("ALT 12x ULN", "ALT increased"),
        ("international normalized ratio 9.4", "international normalised ratio high"),
        ("alanine aminotransferase 612", "alanine aminotransferase high"),
        ("absolute neutrophil count of 0.3", "neutrophils low"),
        ("mean arterial pressure 48", "blood pressure low"),
        ("12 hr 30", "12 hr 30"),
        ("100 mg 3", "100 mg 3"),
        ("don't 40", "don't 40"),
        ("b12 is 140", "vitamin b12 low"),
        ("vitamin b12 of 400", "vitamin b12 of 400"),
        ("vitamin d level dropped to 11", "vitamin d low"),
        ("vitamin d 2000 units", "vitamin d 2000 units"),
        ("ferritin 6", "ferritin low"),
        ("ferritin jumped to 1,800", "ferritin high"),
        ("magnesium 4.2", "magnesium high"),
        ("magnesium 400 mg", "magnesium 400 mg"),
        ("magnesium 5 mg", "magnesium 5 mg"),
        ("hematocrit 22", "hematocrit low"),
        ("cortisol was 1.2", "cortisol low"),
        ("phosphorus 0.5", "phosphorus low"),
        ("no number", "no number"),
    ],
)
def test_values_changes_and_arrows_are_put_into_words(text: str, words: str) -> None:
    assert in_words(text) == words


def test_a_mention_ends_with_the_reading_that_begins_in_it() -> None:
    text = "my blood sugar was in the 40s again"
    assert text[3 : end_with_reading(text, 3, 18)] == "blood sugar was in the 40s"
    assert end_with_reading("nausea for 40 days", 0, 6) == len("nausea")
    assert end_with_reading("potassium was 4.1 today", 0, 13) == len("potassium was 4.1")


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("respirations 16", "normal"),
        ("HR 72", "normal"),
        ("BP 120/80 mmHg", "normal"),
        ("potassium 4.1 mEq/L", "normal"),
        ("oxygen saturation 97% on RA", "normal"),
        ("Cr 0.9 stable", "normal"),
        ("creatine kinase of 12,000", "high"),
        ("sodium 118", "low"),
        ("K 5.3", None),
        ("BP 92/50", None),
        ("SBP <120", None),
        ("hypotension, BP 120/80", None),
        ("HR 72 to 130", None),
        ("rash", None),
    ],
)
def test_a_text_is_only_a_reading_where_it_has_nothing_else(text: str, level: str | None) -> None:
    assert only_reading(text) == level
