"""Quoted replies, greetings and signatures are no part of a question; half of the inputs are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.encoder.model import Encoder
from models.summarization.model import NOTHING_ASKED, SummarizationModel
from models.summarization.unasked import asks_nothing, is_not_asked, without_quotes
from models.types import ShortQuestion

REPLY = "> You should stop it.\n> Is that clear?\n"
ASKED = "Is it safe to stop Lipitor?\n"


@pytest.mark.parametrize(
    "text",
    [
        "Hello Sir, Good morning. Thank you.", "Hello doctor. Please reply soon. Regards, Anita", "Hi",
        "Dear Dr. Kumar, thank you in advance.\nBest regards,\nAnita Rao", "Good evening all", "Hello!!",
        "Please help me.", "Hi there, can you please help?", "Thanks, Bob", "hello sir please reply asap",
        "Looking forward to your reply.\nSincerely,\n[NAME]", "Thank you so much for your time and help!",
    ],
)  # fmt: skip
def test_a_message_of_courtesies_asks_nothing(text: str) -> None:
    assert asks_nothing(text)


@pytest.mark.parametrize(
    "text",
    [
        "Hello Sir, is Zoloft good? Thank you.", "Thanks to Lipitor I have pain.", "Lamictal rash. Thank you",
        "Why?", "Is it good for you?", "Hello. Warfarin Cranberry", "Please explain gout.", "gout", "[NAME]",
        "Dear all, my mother died.", "Regards, is it safe?", "Hi, Zoloft dose", "Good morning sickness pills",
    ],
)  # fmt: skip
def test_a_message_that_names_or_asks_anything_is_read(text: str) -> None:
    assert not asks_nothing(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I don't want to know about side effects.", True),
        ("I\u2019m not asking about the dose.", True),
        ("We are not interested in herbs.", True),
        ("I do not really want to hear of statins.", True),
        ("I don't want to take statins.", False),
        ("I don't want to know about side effects but who makes it.", False),
        ("I want to know about side effects.", False),
        ("I don't know about side effects.", False),
        ("My doctor is not interested in it.", False),
    ],
)
def test_what_a_writer_does_not_ask(text: str, expected: bool) -> None:
    assert is_not_asked(text) is expected


@pytest.mark.parametrize(
    ("text", "own"),
    [
        (REPLY + ASKED, ASKED),
        (ASKED + REPLY, ASKED),
        (f"On Mon, Mar 2, 2026 at 10:00, Dr. X wrote:\n{REPLY}\n{ASKED}", f"\n{ASKED}"),
        (f"{ASKED}On Monday Dr. X wrote:\nYou should stop it.\n", ASKED),
        (f"{ASKED}-----Original Message-----\nFrom: a\nYou should stop it.\n", ASKED),
        (f"{ASKED}From: Dr. X\nSent: Monday\nYou should stop it.\n", ASKED),
        (f"{ASKED}> 20 mg a day\n> is enough\n{ASKED}", f"{ASKED}> 20 mg a day\n{ASKED}"),
        (f"> Take\n> 20 mg a day\n{ASKED}", ASKED),
        (f"> >> Take it.\n{ASKED}", ASKED),
        # read as they are
        (ASKED, ASKED),
        (REPLY, REPLY),
        ("My INR is\n>3 since Friday. Why?", "My INR is\n>3 since Friday. Why?"),
        ("My potassium: a -> b. Why?", "My potassium: a -> b. Why?"),
        ("From: my knee\nto my hip. Why?", "From: my knee\nto my hip. Why?"),
        (f"On Monday my doctor wrote:\nStop it.\n{ASKED}", f"Stop it.\n{ASKED}"),
        ("", ""),
    ],
)  # fmt: skip
def test_what_a_message_quotes_is_left_out(text: str, own: str) -> None:
    assert without_quotes(text).text == own


@given(st.lists(st.sampled_from(["a\n", "> q\n", "b c\r\n", "\n", "> 3\n", "On Mon X wrote:\n", "end"])))
def test_each_place_is_that_of_the_message(lines: list[str]) -> None:
    text = "".join(lines)
    own = without_quotes(text)
    for i, character in enumerate(own.text):
        short = own.written(ShortQuestion("", "extractive", 0.0, i, i + 1))
        assert short.start is not None and text[short.start : short.end] == character


def test_a_short_question_has_its_place_in_the_whole_message(small: Encoder) -> None:
    text = REPLY + ASKED
    nothing, short = SummarizationModel(small).predict(["Hello. Thank you.", text])
    assert nothing == NOTHING_ASKED
    assert short.text == ASKED.strip() == text[short.start : short.end]
