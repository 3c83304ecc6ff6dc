"""Which sentences of a text may be its short question."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given

from models.summarization.sentence_selection import candidate_sentences, is_question, split_sentences
from tests.models.summarization.messages import MESSAGES


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ('He asked "why?"', True),
        ("ok for me?\U0001f914", True),
        ("what foods to avoid", True),
        ("WILL it pass", True),
        ("anybody here on it", True),
        ("Does anyone know", True),
        ("Was in the hospital over Labor Day.", False),
        ("Have been told that it is gout", False),
        ("Was this gout", True),
        ("When she stands up she faints.", False),
        ("Where I live there is none", False),
        ("When does it start", True),
        ("When he stands up, is it safe?", True),
        ("Might just be nerves.", False),
        ("Might it be nerves", True),
        ("Can't sleep at all.", False),
        ("Which is why I ask.", False),
        ("What a relief it was.", False),
        ("Could Zoloft do this", True),
        ("Iszatech helps.", False),
        ("Howard takes it.", False),
        ("Tell me how it works.", False),
        ("", False),
        ("why", True),
    ],
)
def test_a_question_has_a_question_mark_or_starts_like_one(sentence: str, expected: bool) -> None:
    assert is_question(sentence) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("On it for years. Can it cause hair loss? Thanks.", ["Can it cause hair loss?"]),
        ("Is it safe? I wonder. Which dose?", ["Is it safe?", "Which dose?"]),
        ("SUBJECT: metformin\nMESSAGE: Can it cause hair loss?", ["Can it cause hair loss?"]),
        ("SUBJECT: metformin\nMESSAGE:\nthanks", ["metformin", "thanks"]),
        ("Subject :  gout", ["gout"]),
        ("Q: is it safe", ["is it safe"]),
        ("Subjective: gout", ["Subjective: gout"]),
        ("SUBJECT:", ["SUBJECT:"]),
        (" ", [" "]),
    ],
)
def test_candidates_are_questions_or_else_all_bare_sentences(text: str, expected: list[str]) -> None:
    assert [text[s.start : s.end] for s in candidate_sentences(text)] == expected


@given(MESSAGES)
@example("re: re: re:")
def test_every_text_has_candidates_within_it(text: str) -> None:
    spans = candidate_sentences(text)
    assert spans
    assert all(s.end <= len(text) for s in spans)
    assert all(a.end <= b.start for a, b in pairwise(spans))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Is it safe?I take two", ["Is it safe?", "I take two"]),
        (f"{'very ' * 10}ill and\nsick. Is it\nflu", [f"{'very ' * 10}ill and\nsick.", "Is it", "flu"]),
        (f"{'very ' * 10}ill\n\nsick", [f"{'very ' * 10}ill", "sick"]),
        ("I have it.Can you help?? Ok", ["I have it.", "Can you help??", "Ok"]),
        ("See www.a.example/page.html or 2.5 MG.", ["See www.a.example/page.html or 2.5 MG."]),
        (" ", [" "]),
    ],
)
def test_sentences_are_divided_where_the_space_is_missing(text: str, expected: list[str]) -> None:
    assert [text[s.start : s.end] for s in split_sentences(text)] == expected
