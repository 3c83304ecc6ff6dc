"""What normalization learns from and searches, its losses, and the rule for NIL."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from models.encoder.model import Encoder
from models.normalization import patient_phrases as files
from models.normalization.nil_rule import FEATURES
from models.normalization.patient_phrases import Phrases
from models.terminology import Term
from tests.training.normalization.small_terms import gold
from training.common.corpora import GoldCoding
from training.normalization.data import Phrase, misspelled, taught_phrases, terms_of
from training.normalization.isolated import softmax_loss
from training.normalization.network import cosine_embedding
from training.normalization.nil_rule import ALLOWED_LOSS, NilExamples, best_threshold, fitted
from training.normalization.phrases import LEAST_COSINE, distinct, mention_phrases, written_phrases
from training.normalization.settings import Settings
from training.teaching.readers import phrases

INSOMNIA = [Term(name, "Insomnia", "Psychiatric disorders") for name in ("Insomnia", "Sleeplessness")]


def test_only_phrases_that_are_not_held_out_and_whose_term_is_known_are_taught() -> None:
    psytar = [GoldCoding("Awake!", "", "", ("sleeplessness",)), GoldCoding("odd", "", "", ("unknown",))]
    taught = taught_phrases(INSOMNIA, psytar)
    assert Phrase("awake!", "Insomnia") in taught
    assert {p.pt for p in taught} == {"Insomnia"} and len(taught) == len(set(taught)) > 5
    held_out = {p.mention.lower() for p in phrases("held_out")}
    assert not held_out & {p.words for p in taught}


def test_a_limit_leaves_whole_preferred_terms_with_all_their_names() -> None:
    everything, few = terms_of(Settings()), terms_of(Settings(limit=2))
    pts = {t.pt for t in few}
    assert len(pts) == 2
    assert few == [t for t in everything if t.pt in pts]
    assert {t.frequency for t in few} == {5}


def test_one_long_word_is_written_wrong_and_short_words_and_numbers_stay() -> None:
    rng, seen = random.Random(1), set()
    for _ in range(200):
        first, word, last = misspelled("so nauseous 24/7", rng).split(" ")
        assert (first, last) == ("so", "24/7")
        assert word[0] == "n" and word[-1] == "s" and abs(len(word) - 8) <= 1
        seen.add(word)
    assert {"nuaseous", "nuseous", "naauseous"} <= seen and len(seen) > 20
    assert misspelled("had a bad day 12345", random.Random(1)) == "had a bad day 12345"
    assert misspelled("", random.Random(1)) == ""


def test_the_losses_are_those_of_the_paper() -> None:
    refined = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    positive = torch.tensor([[1.0, 1.0], [0.0, 1.0]])
    negative = torch.tensor([[-1.0, 0.0], [3.0, 4.0]])
    # Positives: 1 - cos 45 degrees, 0. Negatives: max(0, -1), 0.8.
    expected = ((1 - 0.5**0.5) + 0 + 0 + 0.8) / 4
    assert cosine_embedding(refined, positive, negative).item() == pytest.approx(expected, abs=1e-6)
    one, terms = torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    learned, right = torch.tensor([[True, False, False]]), torch.tensor([[True, True, False]])
    e = float(torch.e)
    loss = softmax_loss(one, terms, learned, right, 1.0).item()
    assert loss == pytest.approx(-torch.log(torch.tensor(e / (e + 1))).item(), abs=1e-6)
    both = softmax_loss(one, terms, right, right, 1.0).item()
    assert both == pytest.approx(-torch.log(torch.tensor(2 * e / (2 * e + 1))).item(), abs=1e-6)


def test_the_best_threshold_has_the_most_right_codings_less_wrong_ones() -> None:
    rows = [(0.9, True), (0.5, False), (0.3, False)]
    # From 0.51 on only the right one is coded.
    assert best_threshold(rows) == 0.51
    assert best_threshold([*rows, (0.4, True), (0.45, True), (0.35, True)]) == 0.31


def test_the_rule_separates_missing_concepts_and_loses_a_share_of_the_right_codings() -> None:
    rng = np.random.default_rng(1)
    features = rng.normal(size=(1000, len(FEATURES)))
    missing = features[:, 0] + 0.5 * rng.normal(size=1000) < 0
    rule = fitted(NilExamples(features, ~missing, missing))
    nil = np.array([rule.confidence(row) < rule.below for row in features])
    assert nil[~missing].mean() == pytest.approx(ALLOWED_LOSS, abs=0.01)
    assert nil[missing].mean() > 0.6


NAMES = ("Insomnia", "Sleeplessness", "Headache", "Rash", "Nausea")
TERMS = [Term(name, "Insomnia" if name == "Sleeplessness" else name, "-") for name in NAMES]


def test_a_mention_that_is_searched_has_one_preferred_term_and_is_no_name(tiny_bert: str) -> None:
    golds = [
        gold("Eyes  wide open", "Insomnia", "a"),
        gold("eyes wide open", "Sleeplessness", "b"),
        gold("awful", "Rash", "a"),
        gold("awful", "Nausea", "b"),
        gold("sleeplessness", "Insomnia", "a"),
        gold("unknown", "No such term", "a"),
    ]
    encoder = Encoder.load(tiny_bert, max_pieces=32)
    found = mention_phrases(encoder, TERMS, golds)
    assert (found.texts, found.pts, found.min_cosine) == (("eyes wide open",), ("Insomnia",), LEAST_COSINE)
    assert isinstance(found.vectors, torch.Tensor)
    assert torch.equal(found.vectors, encoder.embed(["eyes wide open"]))


def test_written_phrases_keep_their_term_and_vector(tiny_bert: str) -> None:
    encoder = Encoder.load(tiny_bert, max_pieces=32)
    found = written_phrases(encoder, TERMS, encoder.embed([t.llt for t in TERMS]))
    taught = {(p.words, p.pt) for p in taught_phrases(TERMS)}
    assert set(zip(found.texts, found.pts, strict=True)) <= taught
    assert found.texts and found.penalty == 0.05
    assert isinstance(found.vectors, torch.Tensor)
    assert torch.allclose(found.vectors, encoder.embed(found.texts), atol=1e-5)


def test_phrases_are_read_as_written_without_unknown_terms_and_near_copies(tmp_path: Path) -> None:
    texts, pts = ("wide awake", "head in a vice"), ("Insomnia", "Headache")
    files.write(tmp_path / "phrases.tsv", texts, pts)
    assert files.read(tmp_path / "phrases.tsv") == (texts, pts)
    phrases = Phrases(("a", "b", "c"), ("Rash", "Unknown", "HEADACHE"), torch.eye(3), 0.5)
    kept = phrases.within(TERMS)
    assert (kept.texts, kept.pts) == (("a", "c"), ("Rash", "Headache"))
    assert isinstance(kept.vectors, torch.Tensor)
    assert torch.equal(kept.vectors, torch.eye(3)[[0, 2]])
    vectors = normalize(torch.tensor([[1.0, 0.1], [0.0, 1.0], [0.1, 1.0], [1.0, 1.0]]))
    assert distinct(vectors, torch.tensor([[1.0, 0.0]])) == [1, 3]


@pytest.mark.parametrize("content", ["", "a\tb\n", "phrase\tpt\nalone\n", "phrase\tpt\n\tRash\n"])
def test_a_broken_file_of_phrases_is_refused_and_named(content: str, tmp_path: Path) -> None:
    path = tmp_path / "phrases.tsv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=r"phrases\.tsv"):
        files.read(path)
