"""What normalization learns from: phrases, names that stand for them, and misspelled words."""

from __future__ import annotations

import random

from models.terminology import Term
from training.common.corpora import GoldCoding
from training.normalization.data import Phrase, misspelled, taught_phrases, terms_of
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


def test_one_long_word_is_written_wrong_between_its_first_and_last_letter() -> None:
    rng, seen = random.Random(1), set()
    for _ in range(200):
        first, word, last = misspelled("so nauseous 24/7", rng).split(" ")
        assert (first, last) == ("so", "24/7")
        assert word[0] == "n" and word[-1] == "s" and abs(len(word) - 8) <= 1
        seen.add(word)
    assert {"nuaseous", "nuseous", "naauseous"} <= seen and len(seen) > 20


def test_short_words_and_numbers_stay_as_they_are() -> None:
    assert misspelled("had a bad day 12345", random.Random(1)) == "had a bad day 12345"
    assert misspelled("", random.Random(1)) == ""
