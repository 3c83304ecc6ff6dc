"""Two releases of short questions beside each other."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.summarization.compared import CHUNK, in_turns, row
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


class Model:
    """Answers with its name, and notes in a list shared with another that it did."""

    def __init__(self, name: str, asked: list[str]) -> None:
        self.name, self.asked = name, asked

    def predict(self, texts: Sequence[str]) -> list[ShortQuestion]:
        self.asked.append(self.name)
        sum(range(10_000))
        return answers(*(f"{self.name} {text}" for text in texts))


def test_releases_answer_all_questions_in_turns() -> None:
    asked: list[str] = []
    texts = [str(i) for i in range(CHUNK + 1)]
    found, ratios = in_turns([Model("a", asked), Model("b", asked)], texts)
    assert [[a.text for a in own] for own in found] == [[f"{n} {t}" for t in texts] for n in "ab"]
    assert asked == ["b", "a", "a", "b"]
    assert len(ratios) == 2
    assert min(ratios) > 0
