"""Misspelled words of mentions are corrected; words that anybody knows are not."""

from __future__ import annotations

import dataclasses

import pytest

from models.encoder.model import Encoder
from models.normalization.model import NormalizationModel, spelling_of
from models.normalization.patient_phrases import Phrases
from models.normalization.spelling import Spelling
from models.terminology import Term
from models.types import Query

NAMES = [
    "Nausea",
    "Nausea aggravated",
    "Insomnia",
    "Insomnia exacerbated",
    "Weird dreams",
    "Have no appetite",
    "Seizure",
    "Seizures febrile",
    "Partial seizures",
    "Tired all day",
    "Tired eyes",
]
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
