"""Names in place of pronouns, and what is left out of a clause."""

from __future__ import annotations

import time

import pytest

from models.summarization.editing.clause import is_plural, shortened, with_name


@pytest.mark.parametrize(
    ("question", "name", "drug", "expected"),
    [
        ("Is this passed down?", "Dupuytren", False, "Is Dupuytren passed down?"),
        ("Will it get worse?", "gout", False, "Will gout get worse?"),
        ("Are they hereditary?", "gout", False, "Is gout hereditary?"),
        ("Is it contagious?", "warts", False, "Are warts contagious?"),
        ("What are the chances that I have it?", "gout", False, "What are the chances that I have gout?"),
        ("Can I just stop it or not?", "oxybutynin", True, "Can I just stop oxybutynin or not?"),
        ("Does it cause hair loss?", "Zoloft", True, "Does Zoloft cause hair loss?"),
        ("Is it safe for kids?", "melatonin", True, "Is melatonin safe for kids?"),
        ("Is it safe with warfarin?", "melatonin", True, "Is melatonin safe with warfarin?"),
    ],
)
def test_a_name_takes_the_place_of_the_pronoun_that_means_it(
    question: str, name: str, drug: bool, expected: str
) -> None:
    assert with_name(question, name, drug=drug) == expected


@pytest.mark.parametrize(
    ("question", "drug"),
    [
        ("Is it time to call the doctor?", False),
        ("Is it safe to take aspirin?", True),
        ("Would it be safe for me to take aspirin?", True),
        ("Is it ok for my dad to drink wine?", True),
        ("Is it contagious?", True),
        ("What happens if you mix them?", True),
        ("Can I stop it and take it again?", True),
        ("Can I take it with my blood thinner?", True),
        ("Why?", False),
    ],
)
def test_a_pronoun_of_another_meaning_stays(question: str, drug: bool) -> None:
    assert with_name(question, "gout", drug=drug) is None


def test_plurals_are_recognised_by_their_ending_and_names_are_none() -> None:
    assert [is_plural(n) for n in ("kidney stones", "diabetes", "Parkinsons", "lupus", "gout")] == [
        True,
        False,
        False,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What exactly causes gout please?", "What causes gout?"),
        ("Should I avoid this work as it means so much standing?", "Should I avoid this work?"),
        ("What are the treatments for my old mother who lives alone?", "What are the treatments?"),
        ("What can I give him because he has a rash?", "What can I give him because he has a rash?"),
        ("Does it help at all, and is it at all safe?", "Does it help, and is it safe?"),
        ("Should I wear it at all times?", "Should I wear it at all times?"),
        ("Is tea a problem by the way?", "Is tea a problem?"),
        ("Is it bad by the way it smells?", "Is it bad by the way it smells?"),
        ("Why is it so? I know because I read.", "Why is it so? I know because I read."),
        ("What sort of diet, if you please?", "What sort of diet, if you please?"),
    ],
)
def test_what_is_for_the_writer_alone_is_left_out(question: str, expected: str) -> None:
    assert shortened(question, asks=True, names=["rash"]) == expected


@pytest.mark.parametrize(
    "question",
    [
        # Compared, or a time.
        "Can I stop the antibiotic as soon as I feel better?",
        "Is this pill the same as my old one?",
        "Is it fine every night as I do?",
        "Is the swollen knee normal since I had the operation?",
        "Why do I feel worse since my dose was doubled?",
        "Why am I so tired since I've been on this?",
        "Why is it worse since it's been so long?",
        # The state of the patient.
        "Should I take Sudafed since I am breastfeeding?",
        "Can I take Accutane as we want a baby?",
        "How much can I give him because he is only 2?",
        "What is the right dose for my 4 year old grandson?",
        "What vaccines are safe for my cousin who has no spleen?",
    ],
)
def test_what_the_answer_depends_on_stays(question: str) -> None:
    assert shortened(question, asks=True, names=[]) == question


@pytest.mark.parametrize(
    "reason", ["since I am bored", "since we can't walk", "because I read", "as it hurts"]
)
def test_a_reason_is_left_out(reason: str) -> None:
    assert shortened(f"What can cause gout {reason}?", asks=True, names=[]) == "What can cause gout?"


def test_a_statement_loses_only_fillers() -> None:
    text = "I really have gout because my father had it"
    assert shortened(text, asks=False, names=[]) == "I have gout because my father had it"


def test_the_time_of_a_question_with_much_white_space_is_bounded() -> None:
    question = f"What{' ' * 99_000}is it?"
    started = time.process_time()
    assert shortened(question, asks=True, names=[]) == question
    assert time.process_time() - started < 2
