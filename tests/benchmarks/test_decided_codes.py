"""What decisions on codes mend: the counts of a draw over a few mentions."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.decided_codes import Mentions
from models.types import Query
from streams.rollout.loading import load_release
from streams.settings import Settings

WORDS = "weird wobbly zaps"


@pytest.fixture(scope="module")
def model() -> Any:
    return load_release("normalization", None, Settings(dtype="float32")).model


def asked(words: str) -> Query:
    return Query(f"I had {words} all day", 6, 6 + len(words), words)


def test_a_decision_mends_the_same_words_of_others_and_leaves_the_rest(model: Any) -> None:
    queries = [asked(WORDS), asked(WORDS.capitalize()), asked(WORDS), asked("nausea")]
    mentions = Mentions(model, queries, [{"Tooth injury"}] * 3 + [{"Nausea"}])
    assert mentions.wrong.tolist() == [True, True, True, False]
    assert mentions.counts([0]) == {"decided": [1, 0], "reached": [2, 2, 0], "others": [2, 0], "changed": [0]}


def test_words_that_were_given_two_terms_decide_nothing(model: Any) -> None:
    mentions = Mentions(model, [asked(WORDS)] * 3, [{"Tooth injury"}, {"Tooth loss"}, {"Tooth loss"}])
    counts = mentions.counts([0, 1])
    assert counts == {"decided": [2, 2], "reached": [0, 0, 0], "others": [1, 1], "changed": [0]}
