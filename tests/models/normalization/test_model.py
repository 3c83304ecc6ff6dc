"""Coding to a terminology: the nearest terms, one candidate per preferred term, NIL below the threshold."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from models.encoder.model import Encoder
from models.loading import Loaded, as_json
from models.normalization.context_refining import Refiner
from models.normalization.known_wordings import KnownWordings
from models.normalization.model import NormalizationModel
from models.normalization.patient_phrases import Phrases
from models.supplement import Decided, Decision
from models.terminology import Term
from models.types import Query

TERMS = [
    Term("Insomnia", "Insomnia", "Psychiatric disorders"),
    Term("Sleeplessness", "Insomnia", "Psychiatric disorders"),
    Term("Difficulty sleeping", "Insomnia", "Psychiatric disorders"),
    Term("Somnolence", "Somnolence", "Nervous system disorders"),
    Term("Drowsiness", "Somnolence", "Nervous system disorders"),
    Term("Headache", "Headache", "Nervous system disorders"),
    Term("Migraine", "Migraine", "Nervous system disorders"),
    Term("Nausea", "Nausea", "Gastrointestinal disorders"),
    Term("Feeling sick", "Nausea", "Gastrointestinal disorders"),
    Term("Vomiting", "Vomiting", "Gastrointestinal disorders"),
    Term("Rash", "Rash", "Skin and subcutaneous tissue disorders"),
]


def query(surface: str) -> Query:
    return Query(text=surface, start=0, end=len(surface), surface=surface)


def model_of(encoder: Encoder, k: int = 5, nil_below: float = 0.4) -> NormalizationModel:
    return NormalizationModel(encoder, TERMS, encoder.embed([t.llt for t in TERMS]), k=k, nil_below=nil_below)


@pytest.fixture(scope="module")
def model(mini: Encoder) -> NormalizationModel:
    return model_of(mini)


def test_terms_lay_words_and_surface_forms_are_coded_to_their_term(model: NormalizationModel) -> None:
    for term, coding in zip(TERMS, model.predict([query(t.llt) for t in TERMS]), strict=True):
        best = coding.candidates[0]
        assert (best.llt, best.pt, best.soc) == (term.llt, term.pt, term.soc)
        assert best.score > 0.99
        assert not coding.nil
    sleep, stomach = model.predict([query("couldn't sleep at night"), query("threw up")])
    assert sleep.candidates[0].pt == "Insomnia"
    assert stomach.candidates[0].pt == "Vomiting"
    text = "HA since monday"
    (acronym,) = model.predict([Query(text=text, start=0, end=2, surface="headache")])
    assert acronym.candidates[0].pt == "Headache"
    assert model.predict([]) == []


def test_each_preferred_term_has_its_nearest_name(model: NormalizationModel, mini: Encoder) -> None:
    for coding in model.predict([query("sleep"), query("sick"), query("violin"), query("")]):
        pts = [c.pt for c in coding.candidates]
        scores = [c.score for c in coding.candidates]
        assert len(pts) == len(set(pts)) == 5
        assert scores == sorted(scores, reverse=True)
    (sleepy,) = model.predict([query("being sleepy all day")])
    cosines = (mini.embed([t.llt for t in TERMS]) @ mini.embed(["being sleepy all day"])[0]).tolist()
    for candidate in sleepy.candidates:
        nearest = max((c, t.llt) for c, t in zip(cosines, TERMS, strict=True) if t.pt == candidate.pt)
        assert candidate.llt == nearest[1]
        assert candidate.score == pytest.approx(nearest[0], abs=1e-4)


@pytest.mark.parametrize(("k", "expected"), [(1, 1), (3, 3), (7, 7), (50, 7)])
def test_there_are_at_most_k_candidates(mini: Encoder, k: int, expected: int) -> None:
    (coding,) = model_of(mini, k=k).predict([query("headache")])
    assert len(coding.candidates) == expected
    assert coding.candidates[0].pt == "Headache"


def test_a_mention_far_from_all_terms_is_nil_and_keeps_its_candidates(mini: Encoder) -> None:
    bicycle, headache = model_of(mini, nil_below=0.6).predict(
        [query("purple bicycle"), query("bad headache")]
    )
    assert bicycle.nil
    assert len(bicycle.candidates) == 5
    assert bicycle.candidates[0].score < 0.6
    assert not headache.nil


def test_a_phrase_is_a_candidate_from_its_minimum_cosine(mini: Encoder) -> None:
    phrase = "cannot shut my eyes at night"
    without = model_of(mini)
    phrases = Phrases((phrase,), ("Insomnia",), mini.embed([phrase]), 0.9)
    vectors = mini.embed([t.llt for t in TERMS])
    model = NormalizationModel(mini, TERMS, vectors, k=5, nil_below=0.4, phrases=phrases)
    queries = [query("Cannot shut my eyes at night"), query("cannot shut the door"), query("Sleeplessness")]
    (same, far, term), before = model.predict(queries), without.predict(queries)
    best = same.candidates[0]
    assert (best.pt, best.llt, best.phrase) == ("Insomnia", "Insomnia", phrase)
    assert best.score > 0.9 > before[0].candidates[0].score
    assert (far, term) == (before[1], before[2])
    assert len({c.pt for c in same.candidates}) == 5
    assert model.mention_only().predict(queries) == before


def test_with_another_terminology_only_phrases_of_its_preferred_terms_remain(mini: Encoder) -> None:
    texts = ("cannot shut my eyes", "my skull bursts")
    phrases = Phrases(texts, ("Insomnia", "Headache"), mini.embed(texts), 0.9)
    vectors = mini.embed([t.llt for t in TERMS])
    model = NormalizationModel(mini, TERMS, vectors, k=5, nil_below=0.4, phrases=phrases)

    def over(*terms: Term) -> NormalizationModel:
        named = mini.embed([t.llt for t in terms])
        return NormalizationModel(mini, terms, named, k=2, nil_below=0.0, **model.phrases_of(terms))

    rash = Term("Rash", "Rash", "-")
    other = over(Term("Pain in head", "HEADACHE", "-"), rash)
    eyes, skull = other.predict([query(t) for t in texts])
    assert {c.phrase for c in eyes.candidates} == {None}
    assert (skull.candidates[0].pt, skull.candidates[0].phrase) == ("HEADACHE", texts[1])
    assert over(rash).predict([query(texts[0])])[0].candidates[0].pt == "Rash"


def at_cosines(mention: torch.Tensor, *cosines: float) -> torch.Tensor:
    """(cosines, dimension) unit vectors with these cosines to a unit vector."""
    other = torch.roll(mention, 1)
    other = torch.nn.functional.normalize(other - (other @ mention) * mention, dim=0)
    return torch.stack([c * mention + (1 - c * c) ** 0.5 * other for c in cosines])


def test_a_taught_phrase_is_a_candidate_behind_a_term_of_the_same_cosine(mini: Encoder) -> None:
    texts = ("out cold by noon", "headache")
    taught = Phrases(texts, ("Somnolence", "Nausea"), mini.embed(texts), -2.0, penalty=0.03)
    vectors = mini.embed([t.llt for t in TERMS])
    model = NormalizationModel(mini, TERMS, vectors, k=5, nil_below=0.4, taught=taught)
    first, second = model.predict([query("out cold by noon"), query("headache")])
    assert (first.candidates[0].pt, first.candidates[0].phrase) == ("Somnolence", "out cold by noon")
    assert first.candidates[0].score == pytest.approx(0.97, abs=1e-3)
    assert [(c.pt, c.phrase) for c in second.candidates[:2]] == [("Headache", None), ("Nausea", "headache")]
    (alone,) = model.mention_only().predict([query("out cold by noon")])
    assert all(c.phrase is None for c in alone.candidates)
    lacking = model.without({"Somnolence"})
    assert lacking.taught is not None
    assert lacking.taught.texts == ("headache",)


@pytest.mark.parametrize(("vote", "first"), [(0.0, "Rash"), (0.03, "Nausea")])
def test_names_and_phrases_of_a_preferred_term_add_up(mini: Encoder, vote: float, first: str) -> None:
    mention = mini.embed(["felt off"])[0]
    terms = [Term("Rash", "Rash", "Skin"), Term("Nausea", "Nausea", "Gut")]
    taught = Phrases(("a", "b"), ("Nausea", "Nausea"), at_cosines(mention, 0.79, 0.79), -2.0)
    model = NormalizationModel(
        mini, terms, at_cosines(mention, 0.80, 0.5), k=2, nil_below=0.4, taught=taught, vote=vote
    )
    (coding,) = model.predict([query("felt off")])
    assert coding.candidates[0].pt == first
    assert {c.pt: c.score for c in coding.candidates} == pytest.approx({"Rash": 0.80, "Nausea": 0.79})


@pytest.mark.parametrize(("prior", "first"), [(0.0, "Rash"), (0.01, "Nausea")])
def test_the_more_frequent_of_two_near_terms_comes_first(mini: Encoder, prior: float, first: str) -> None:
    mention = mini.embed(["felt off"])[0]
    terms = [Term("Rash", "Rash", "Skin", frequency=1), Term("Nausea", "Nausea", "Gut", frequency=5)]
    model = NormalizationModel(
        mini, terms, at_cosines(mention, 0.80, 0.77), k=2, nil_below=0.4, prior=prior, vote=0.04
    )
    asked = query("felt off")
    for same in (model, model.without(set())):
        (coding,) = same.predict([asked])
        assert coding.candidates[0].pt == first
        assert {c.pt: c.score for c in coding.candidates} == pytest.approx({"Rash": 0.80, "Nausea": 0.77})
    assert model.phrases_of(terms)["prior"] == prior


@pytest.mark.parametrize(("coded_as", "first"), [(None, "Rash"), ("Nausea", "Nausea")])
def test_a_name_has_its_own_term_whatever_is_near(mini: Encoder, coded_as: str | None, first: str) -> None:
    mention = mini.embed(["less sore"])[0]
    terms = [Term("Less  Sore", "Rash", "Skin"), Term("Nausea", "Nausea", "Gut", frequency=5)]
    coded = Phrases(("less sore",), (coded_as,), at_cosines(mention, 1.0), -2.0) if coded_as else None
    model = NormalizationModel(
        mini, terms, at_cosines(mention, 1.0, 0.97), k=1, nil_below=0.4, prior=0.01, phrases=coded
    )
    (coding,) = model.predict([query("less sore")])
    assert [c.pt for c in coding.candidates] == [first]
    assert coding.nil == (coded_as is not None)  # as the relief of a symptom


def test_a_canary_check_is_about_the_best_candidate_and_nil(model: NormalizationModel) -> None:
    answers = as_json(model.predict([query("threw up"), query("no sleep")]))
    others = [a | {"candidates": [*a["candidates"][:1], *a["candidates"][:0:-1]]} for a in answers]
    assert answers != others
    assert model.comparable(answers) == model.comparable(others)
    for change in ({"nil": True}, {"candidates": answers[0]["candidates"][1:]}):
        assert model.comparable([answers[0] | change]) != model.comparable(answers[:1])
    stored = [{"text": "HA", "start": 0, "end": 2, "surface": "headache"}]
    assert NormalizationModel.canary_inputs(stored) == [Query("HA", 0, 2, "headache")]


class Sentences(Refiner):
    """Reads mentions of one word, and finds what a sentence says; it names the mentions that it was asked."""

    def __init__(self, says: torch.Tensor) -> None:
        self.words, self.says, self.asked = 1, says, list[str]()

    def embed(
        self, queries: Sequence[Query], e_isolated: Sequence[torch.Tensor]
    ) -> tuple[list[int], torch.Tensor, list[float]]:
        self.asked += [q.surface for q in queries]
        return list(range(len(queries))), self.says.expand(len(queries), -1), [0.7] * len(queries)


@pytest.mark.parametrize(
    ("mention", "says", "codes", "asked"),
    [
        ("aching", "Rash", ("Nausea", "Rash"), True),
        ("itchy", "Headache", ("Rash", "Headache"), True),
        ("nausea", "Rash", ("Nausea", "Nausea"), False),
        ("Drowsiness", "Rash", ("Somnolence", "Somnolence"), False),
        ("temp:103", "Rash", ("Pyrexia", "Pyrexia"), False),
        ("feels sick", "Rash", ("Nausea", "Nausea"), False),
        ("bicycle", "Rash", (None, None), True),
        # The opposite of what the sentence seems to say.
        ("sleepier", "Insomnia", ("Somnolence", "Somnolence"), True),
    ],
)
def test_the_sentence_chooses_between_codes_and_never_makes_nil(
    mini: Encoder, mention: str, says: str, codes: tuple[str | None, str | None], asked: bool
) -> None:
    terms = [*TERMS, Term("Temperature high", "Pyrexia", "-")]
    vectors, refiner = mini.embed([t.llt for t in terms]), Sentences(mini.embed([says]))
    alone = NormalizationModel(mini, terms, vectors, k=5, nil_below=0.35)
    model = NormalizationModel(mini, terms, vectors, k=5, nil_below=0.35, refiner=refiner)
    found = [m.predict([query(mention)])[0] for m in (alone, model)]
    assert tuple(None if c.nil else c.candidates[0].pt for c in found) == codes
    assert refiner.asked == [mention] * asked
    assert [c.context_weight for c in found] == [None, 0.7 if asked and codes[0] else None]
    assert np.array_equal(model.embed([query(mention)]), alone.embed([query(mention)]))


def test_equal_words_are_searched_once(mini: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(mini)
    asked: list[int] = []
    search = model._index.search

    def noting(vectors: np.ndarray[Any, Any], n: int) -> Any:
        asked.append(len(vectors))
        return search(vectors, n)

    monkeypatch.setattr(model._index, "search", noting)
    batch = [query("threw up"), query("no sleep"), query("threw up"), query("threw up")]
    codings = model.predict(batch)
    assert asked == [2]
    assert codings == [c for q in batch for c in model_of(mini).predict([q])]
    assert model.predict([*batch[1:], query("itchy")]) == [
        *codings[1:],
        *model_of(mini).predict([query("itchy")]),
    ]
    assert asked == [2, 1]
    assert model.wordings.taken() == {"kept": 5, "searched": 3}
    assert model.wordings.taken() == {"kept": 0, "searched": 0}


def test_a_known_wording_is_still_read_in_its_sentence(mini: Encoder) -> None:
    vectors = mini.embed([t.llt for t in TERMS])

    def made() -> NormalizationModel:
        refiner = Sentences(mini.embed(["Rash"]))
        return NormalizationModel(mini, TERMS, vectors, k=5, nil_below=0.35, refiner=refiner)

    model, batch = made(), [query("aching"), query("feels sick")]
    assert model.predict(batch) == model.predict(batch) == made().predict(batch)
    assert isinstance(model.refiner, Sentences)
    assert model.refiner.asked == ["aching", "aching"]


def supplemented(model: NormalizationModel, decided: Sequence[tuple[str, str]]) -> NormalizationModel:
    """With these words, decided to have these preferred terms."""
    vectors = model.embed([query(words) for words, _ in decided])
    decisions = [Decision(f"r-{i}", i, "ann", True, "", pt) for i, (_, pt) in enumerate(decided)]
    made = copy.copy(model)
    made.decided, made.wordings = Decided(vectors, decisions, 0.9), KnownWordings()
    return made


def test_what_a_reviewer_decided_of_nearly_the_same_words_goes_first(mini: Encoder) -> None:
    plain = model_of(mini)
    words = ["threw up", "Threw up", "dizzy spells", "the dizzy spells", "vomiting", "no sleep", "itchy"]
    batch = [query(w) for w in words]
    before = plain.predict(batch)
    decided = [("threw up", "Nausea"), ("dizzy spells", ""), ("itchy", "Unknown to this terminology")]
    model = supplemented(plain, decided)
    for found in (model.predict(batch), model.predict(batch)):  # the second time the words are known
        for coding, alone in zip(found[:2], before[:2], strict=True):
            first, *others = coding.candidates
            assert (first.pt, first.llt, first.phrase, coding.nil) == ("Nausea", "Nausea", "review 0", False)
            assert others == [c for c in alone.candidates if c.pt != "Nausea"][: len(others)]
            assert (coding.confidence, alone.candidates[0].pt) == (1.0, "Vomiting")
        assert [c.nil for c in found[2:4]] == [True, True]
        assert found[4:] == before[4:], "names that are nearer, other words, and unknown terms"


def test_a_decision_goes_before_the_sentence(mini: Encoder) -> None:
    vectors, refiner = mini.embed([t.llt for t in TERMS]), Sentences(mini.embed(["Rash"]))
    model = NormalizationModel(mini, TERMS, vectors, k=5, nil_below=0.35, refiner=refiner)
    assert model.predict([query("aching")])[0].candidates[0].pt == "Rash"
    decided = supplemented(model, [("aching", "Headache")])
    for _ in range(2):
        (found,) = decided.predict([query("aching")])
        assert (found.candidates[0].pt, found.context_weight) == ("Headache", None)


def test_the_canary_check_finds_a_broken_encoder_although_all_wordings_are_known(
    mini: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, inputs = model_of(mini), [query("threw up"), query("no sleep")]
    canary = (inputs, as_json(model.predict(inputs)), 1e-4)
    loaded = Loaded("normalization", "0" * 12, "", model, canary)
    assert loaded.passes_canary()
    monkeypatch.setattr(model, "encoder", Encoder(mini.model, mini.tokenizer, 8))
    monkeypatch.setattr(model.encoder, "mean_pooled", lambda texts: torch.full((len(texts), 384), torch.nan))
    assert model.predict(inputs)
    with pytest.raises(ValueError, match="not finite"):
        loaded.passes_canary()
