"""Misspelled words for training."""

from __future__ import annotations

import random

from training.normalization.phrases.misspelling import misspelled


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
