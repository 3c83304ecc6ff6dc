"""The rule for NIL: what it reads of the search, and how a model uses it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from models.encoder.model import Encoder
from models.normalization.model import NormalizationModel
from models.normalization.nil_rule import FEATURES, NilRule, covered, features, lacks_evidence, overlap
from models.normalization.patient_phrases import Phrases
from models.terminology import Term
from models.types import Candidate, Query

TERMS = [Term("Insomnia", "Insomnia", "P"), Term("No sleep", "Insomnia", "P"), Term("Rash", "Rash", "S")]
MARGIN = NilRule(tuple(float(name == "margin") for name in FEATURES), 0.0, 0.6)


def query(surface: str) -> Query:
    return Query(surface, 0, len(surface), surface)


def model_of(encoder: Encoder, rule: NilRule | None) -> NormalizationModel:
    phrase = "counted sheep"
    phrases = Phrases((phrase,), ("Insomnia",), encoder.embed([phrase]), 0.8)
    vectors = encoder.embed([t.llt for t in TERMS])
    return NormalizationModel(encoder, TERMS, vectors, k=5, nil_below=0.9, phrases=phrases, nil_rule=rule)


def test_the_features_are_of_the_nearest_rows_their_letters_and_words() -> None:
    names = ["No sleep", "Sleepless"]
    found = features("no sleep today", names, np.array([0.9, 0.85, 0.7]), np.array([True, True, False]))
    near = np.exp((np.array([0.9, 0.85, 0.7]) - 0.9) / 0.05)
    assert dict(zip(FEATURES, found.tolist(), strict=True)) == pytest.approx(
        {
            "cosine": 0.9,
            "margin": 0.2,
            "share": np.log(near[:2].sum() / near.sum()),
            "overlap": overlap("no sleep today", "No sleep"),
            "words": 3,
            "covered": 2 / 3,
        }
    )
    assert features("a", ["b", "c"], np.array([0.9, 0.5]), np.array([True, True]))[1] == pytest.approx(0.4)
    assert overlap("Rash", "rash") == 1
    assert overlap("rash", "insomnia") == 0
    assert 0 < overlap("rashes", "rash") < 1
    assert covered("Sleepless nights", ["sleepy", "night sweats"]) == 1
    assert covered("no sleep", ["Insomnia"]) == 0
    assert covered("", ["Insomnia"]) == 0


def test_confidence_rises_with_the_features_and_a_rule_is_read_as_it_was_stored() -> None:
    stored = MARGIN.stored()
    del stored["covered"]
    assert NilRule.of(stored) == MARGIN
    del stored["words"]
    with pytest.raises(KeyError):
        NilRule.of(stored)
    low, high = (MARGIN.confidence(np.array([0, margin, 0, 0, 0, 0])) for margin in (-1e6, 1e6))
    assert (low, high) == (0.0, 1.0)
    assert MARGIN.confidence(np.zeros(len(FEATURES))) == 0.5
    assert NilRule.of(MARGIN.stored()) == MARGIN


def test_a_rule_decides_instead_of_the_cosine(mini: Encoder) -> None:
    never, always = (NilRule((0.0,) * len(FEATURES), 0.0, below) for below in (0.4, 0.6))
    asked = [query("sleepless"), query("rash")]
    by_cosine, coded, nil = (model_of(mini, rule).predict(asked) for rule in (None, never, always))
    assert [c.nil for c in by_cosine] == [True, False]
    assert [c.nil for c in coded] == [False, False]
    assert [c.nil for c in nil] == [True, True]
    assert [c.confidence for c in by_cosine] == [None, None]
    assert [c.confidence for c in coded] == [0.5, 0.5]
    assert [c.candidates for c in by_cosine] == [c.candidates for c in coded]


def test_a_serious_term_needs_letters_of_the_mention_or_a_high_cosine(mini: Encoder) -> None:
    def nil(surface: str, *, serious: bool) -> bool:
        terms = [Term("Syncope", "Syncope", "N", serious)]
        vectors = mini.embed(["Syncope"])
        (coding,) = NormalizationModel(mini, terms, vectors, k=1, nil_below=-1.0).predict([query(surface)])
        assert coding.candidates[0].pt == "Syncope"
        return coding.nil

    for surface in ("purple bicycle", "walked to the bathroom", "na", ""):
        assert (nil(surface, serious=True), nil(surface, serious=False)) == (True, False), surface
    for surface in ("syncopal episode at the shop", "SYNCOPE", "sync"):
        assert not nil(surface, serious=True), surface
    near, far = (Candidate("Amnesia", "Amnesia", "N", score, "no recollection") for score in (0.85, 0.72))
    assert not lacks_evidence("slightest recollection", near)
    assert lacks_evidence("slightest recollection", far)


def test_a_phrase_that_does_not_count_is_no_feature(mini: Encoder) -> None:
    model = model_of(mini, MARGIN)
    ((found, pt),) = model.nil_inputs([query("rash")], model.embed([query("rash")]))
    assert pt == "Rash"
    cosines = (mini.embed(["rash"]) @ mini.embed([t.llt for t in TERMS]).T)[0]
    assert found[1] == pytest.approx(float(cosines[2] - cosines[:2].max()), abs=1e-4)


def test_a_model_without_a_term_lacks_its_names_and_phrases(mini: Encoder) -> None:
    lacking = model_of(mini, MARGIN).without({"Insomnia"})
    assert [t.pt for t in lacking.terms] == ["Rash"]
    assert lacking.phrases is None
    for coding in lacking.predict([query("counted sheep"), query("no sleep")]):
        assert [c.pt for c in coding.candidates] == ["Rash"]
    kept = model_of(mini, MARGIN).without({"Rash"})
    asked = [query("counted sheep"), query("no sleep")]
    assert [c.candidates[0].phrase for c in kept.predict(asked)] == ["counted sheep", None]
    whole = model_of(mini, MARGIN)
    assert torch.allclose(torch.from_numpy(whole.embed(asked)), torch.from_numpy(kept.embed(asked)))
    assert kept.predict(asked)[1].candidates[0].score == whole.predict(asked)[1].candidates[0].score
