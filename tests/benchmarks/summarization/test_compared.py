"""Two releases of short questions beside each other."""

from __future__ import annotations

from benchmarks.summarization.compared import row
from models.types import ShortQuestion

TEXTS = ["My knee hurts. What helps against gout?", "Is zoloft safe? Thank you."]
GOLD = ["What helps against gout?", "Is zoloft safe?"]


def answers(*texts: str) -> list[ShortQuestion]:
    return [ShortQuestion(text, "extractive", 1.0) for text in texts]


def test_a_release_is_ahead_by_the_answers_that_are_closer_to_the_references() -> None:
    found = row(answers("Gout?", GOLD[1]), answers(*GOLD), TEXTS, GOLD)
    assert (found["records"], found["answers_that_differ"], found["after"]) == (2, 1, 100.0)
    # "Gout?" has one of the four words: an F1 of 40, so the first question gains 60 and the second nothing.
    assert found["gain"] == 30.0 == found["after"] - found["before"]
    assert found["95 % interval"] == "0.00 to 60.00"
    assert found["first_sentence"] == 50.0


def test_equal_answers_differ_in_nothing() -> None:
    found = row(answers(*GOLD), answers(*GOLD), TEXTS, GOLD)
    assert (found["gain"], found["95 % interval"], found["answers_that_differ"]) == (0.0, "0.00 to 0.00", 0)
