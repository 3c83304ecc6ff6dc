"""The answers that a message offers."""

from __future__ import annotations

import pytest

from models.summarization.extraction.candidates import Candidate, candidate, filled, has_content
from models.summarization.extraction.focus import Focus
from models.types import Span

MELATONIN = Focus(Span(0, 9), "melatonin", {"drug"})
GOUT = Focus(Span(0, 4), "gout", {"term"})


def of(text: str, focus: Focus | None = None) -> Candidate:
    return candidate(text, Span(0, len(text)), focus)


@pytest.mark.parametrize(
    ("shown", "focus", "answer"),
    [
        ("Does it mix with tea?", MELATONIN, "Does melatonin mix with tea?"),
        ("Can this cause a rash?", MELATONIN, "Can melatonin cause a rash?"),
        # "It" may be the weather, or what follows.
        ("Is it safe to drink?", MELATONIN, "Melatonin: is it safe to drink?"),
        ("Does it take long?", MELATONIN, "Melatonin: does it take long?"),
        ("Can it cause a rash?", GOUT, "Gout: can it cause a rash?"),
        ("How long?", GOUT, "Gout: how long?"),
        ("A cure?", GOUT, "Gout: a cure?"),
        ("I need help", GOUT, "Gout: I need help"),
        ("I'm afraid", GOUT, "Gout: I'm afraid"),
        ("MRI or CT?", GOUT, "Gout: MRI or CT?"),
        ("IS it bad?", GOUT, "Gout: IS it bad?"),
        ("Zoloft or tea?", GOUT, "Gout: Zoloft or tea?"),
    ],
)
def test_the_focus_is_put_in_front_of_a_question_or_in_place_of_its_subject(
    shown: str, focus: Focus, answer: str
) -> None:
    assert filled(shown, focus) == answer


def test_the_focus_is_inserted_only_where_the_clause_does_not_name_it() -> None:
    named, unnamed = of("Does melatonins work?", MELATONIN), of("Is it bad?", MELATONIN)
    assert (named.text, named.focus) == ("Does melatonins work?", None)
    assert (unnamed.text, unnamed.focus) == ("Melatonin: is it bad?", MELATONIN)
    assert of("Is it bad?").focus is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Why?", False),
        ("[NAME]", False),
        ("Do they?", False),
        ("Thank you.", False),
        ("What causes gout?", True),
        ("Is it bad now?", True),
    ],
)
def test_few_words_are_an_answer_only_if_they_say_something(text: str, expected: bool) -> None:
    assert has_content(of(text), text) is expected
