"""The answers that a message offers."""

from __future__ import annotations

import pytest

from models.summarization.extraction.answer_candidates import Candidate, candidate, has_content, joined
from models.summarization.extraction.focus import Focus
from models.types import Span

MELATONIN = Focus(Span(0, 9), "melatonin", {"drug"})


def of(text: str, focus: Focus | None = None) -> Candidate:
    return candidate(text, Span(0, len(text)), focus)


def test_a_candidate_shows_its_clause_asks_and_has_the_focus_that_it_does_not_name() -> None:
    named, unnamed = of("Does melatonins work?", MELATONIN), of("Is it bad?", MELATONIN)
    assert (named.text, named.focus) == ("Does melatonins work?", None)
    assert (unnamed.text, unnamed.focus) == ("Is it bad?", MELATONIN)
    assert of("Is it bad?").focus is None
    assert of("I'd like\nto know if it is \r\nsafe.").text == "Is it safe?"
    assert of("Is it  safe?").text == "Is it  safe?"
    assert of("I'm curious whether taking it at night makes a difference").asks
    assert not of("My doctor wondered whether taking it at night makes a difference").asks


@pytest.mark.parametrize(
    ("lead", "expected"),
    [
        ("It tastes of metal", "It tastes of metal. Is it bad?"),
        ('He says "it is fine."', 'He says "it is fine." Is it bad?'),
        ("Is it the pill?!", "Is it the pill?! Is it bad?"),
    ],
)
def test_a_sentence_in_front_gets_a_full_stop_only_where_it_has_no_mark(lead: str, expected: str) -> None:
    assert joined(of(lead), of("Is it bad?")).text == expected


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [("Normal?", True), ("Too much?", True), ("Why?", False), ("Any ideas?", False), ("Help...?", False)],
)
def test_one_word_behind_another_sentence_is_an_answer(text: str, expected: bool) -> None:
    whole = f"It tastes of metal. {text}"
    pair = joined(*(candidate(whole, span, None) for span in (Span(0, 19), Span(20, len(whole)))))
    assert has_content(pair, whole) is expected
