"""The messages that were read."""

from __future__ import annotations

from benchmarks.summarization.messages import FILES, figures, read_messages
from models.types import ShortQuestion


class Echo:
    """Answers each message with the same question."""

    def __init__(self, answer: str) -> None:
        self.answer = answer

    def predict(self, texts: list[str]) -> list[ShortQuestion]:
        return [ShortQuestion(self.answer, "extractive", 1.0)] * len(texts)


def test_figures_are_of_the_model_and_of_the_file() -> None:
    rows = [
        {
            "text": "Hello there. Is it safe?",
            "question": "Is it safe?",
            "answer": "Is it safe?",
            "answer_before": "no",
            "verdict": "asks it",
            "verdict_before": "asks something else",
        }
    ]
    found = figures(Echo("Is it?"), rows)
    assert found["ROUGE-1"] == 80.0
    assert (found["answer, ROUGE-1"], found["answer_before, ROUGE-1"]) == (100.0, 0.0)
    assert found["first sentence, ROUGE-1"] == 0.0
    assert (found["verdict, asks it"], found["verdict_before, asks something else"]) == (1, 1)


def test_every_message_has_its_verdicts() -> None:
    for name in FILES:
        rows = read_messages(name)
        assert len(rows) == 120
        verdicts = {row[column] for row in rows for column in ("verdict", "verdict_before")}
        assert verdicts <= {"asks it", "key part lost", "asks something else", "invents"}
