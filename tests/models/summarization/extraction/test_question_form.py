"""How an indirect question becomes a direct one."""

from __future__ import annotations

import re

import pytest
from hypothesis import given

from models.summarization.extraction.asking_clause import asking_clause
from models.summarization.extraction.question_form import as_question
from tests.models.summarization.messages import MESSAGES


@pytest.mark.parametrize(
    ("sentence", "answer"),
    [
        ("I was wondering if there is a name for it?", "Is there a name for it?"),
        ("I want to know if CDH can be passed on.", "Can CDH be passed on?"),
        ("Please let me know whether anyone in Ulm is an expert", "Is anyone in Ulm an expert?"),
        ("I'd like to ask if The pill is safe", "Is the pill safe?"),
        ("I'd like to know if my capsules have gelatin from pig.", "Do my capsules have gelatin from pig?"),
        ("I want to know if it contains wheat", "Does it contain wheat?"),
        ("Could you tell me what they do in a TIPS?", "What do they do in a TIPS?"),
        ("can you tell me how long it takes", "How long does it take?"),
        ("Please sir help me , tell me how can I abolish it", "How can I abolish it?"),
        ("What my doctor does is fine.", "What my doctor does is fine?"),
        ("I would like to ask if The pill is safe", "Is the pill safe?"),
        ("I was wondering if Zoloft could make me ill", "Could Zoloft make me ill?"),
        ("I just want to ask if I can take it", "Can I take it?"),
        ("I want to know what the side effects of metformin are.", "What are the side effects of metformin?"),
        ("can you tell me how bad it is", "How bad is it?"),
        # The verb of a clause that is no question's stays where it is.
        ("I wonder if I have gout", "Do I have gout?"),
        ("I wonder if people have gout", "I wonder if people have gout"),
        ("I wonder if people who knew what was wrong", "I wonder if people who knew what was wrong"),
        ("I wonder if it isn't gout", "I wonder if it isn't gout"),
        ("tell me what causes gout", "What causes gout?"),
        ("tell me what is the best dose", "What is the best dose?"),
        ("tell me what foods are good for him", "What foods are good for him?"),
        ("How bad it is!", "How bad it is?"),
    ],
)
def test_an_indirect_question_becomes_a_direct_one(sentence: str, answer: str) -> None:
    assert as_question(sentence, asking_clause(sentence)) == answer


@given(MESSAGES)
def test_the_words_stay_the_same(sentence: str) -> None:
    part = asking_clause(sentence)

    def words(text: str) -> list[str]:
        """Without "do" and the endings of verbs, which a question with "do" changes."""
        found = re.findall(r"\w+", text.lower())
        return sorted("have" if w == "has" else w.removesuffix("s") for w in found if w not in ("do", "does"))

    assert words(as_question(sentence, part)) == words(sentence[part.start : part.end])
