"""The statement that a question refers to."""

from __future__ import annotations

import pytest

from models.drugs import DrugLexicon
from models.encoder.model import Encoder
from models.summarization.extraction.answer_candidates import candidate, with_leads
from models.summarization.extraction.message import messages
from models.summarization.extraction.statements import explained
from models.summarization.medical_entities import OwnRecogniser
from models.summarization.sentence_selection import split_sentences

LEXICONS = OwnRecogniser(None, ["gout", "hives"], DrugLexicon({"tylenol": "acetaminophen"}))


def answer(encoder: Encoder, text: str, probable: str) -> str:
    """The last sentence, explained; `probable` is the key word of the text."""
    (message,) = messages(encoder, LEXICONS, [text])
    words = [text[w.start : w.end].lower() for w in message.words]
    message = message._replace(keys=[0.9 * (w == probable) for w in words])
    found = [candidate(text, s, None) for s in split_sentences(text)]
    return explained(message, with_leads(found), found[-1]).text


@pytest.mark.parametrize(
    ("text", "probable"),
    [
        ("I have ulcer pain with the pills. Why is this so?", "ulcer"),
        ("My uncle was made bald by x-rays. Is that possible?", "bald"),
        ("Two days later I got hives on my back. Is this a post use side effect?", "hives"),
        ("My daughter is dying of Crohn's disease. Is there anything you can do?", "dying"),
        ("TEZA no longer makes the capsules. Is this fact?", "capsules"),
        ("My newborn has vaginal spotting. Should I be concerned?", "spotting"),
        ("I have Tylenol for my knee. What else helps?", "tylenol"),
        ("I live with tremors in the legs. What do you suggest I do?", "tremors"),
        ("The nevus on her toe has doubled in size. Should it be removed or not?", "nevus"),
        ("My father has ALS since May. Please suggest a good remedy for him.", "als"),
    ],
)
def test_a_question_that_refers_has_the_statement_in_front(small: Encoder, text: str, probable: str) -> None:
    (last,) = [candidate(text, s, None) for s in split_sentences(text)][-1:]
    assert answer(small, text, probable) == f"{text[: last.sentence.start].strip()} {last.text}"
    # Of three sentences it is the one that the short question probably takes its words from.
    assert answer(small, f"I am from Leeds. {text}", probable) == answer(small, text, probable)


@pytest.mark.parametrize(
    ("text", "probable"),
    [
        ("I have a bad knee. Is Tylenol safe with it?", "knee"),
        ("I live in Leeds with a cat. Why is this so?", "nothing"),
        ("I have a bad knee. How long does a steroid shot last in the joint?", "knee"),
        ("Is my knee bad? Why is this so?", "knee"),
        ("My bad knee hurts. What is gout?", "knee"),
        ("My knee hurts. I am old and this is all I have to say.", "knee"),
        ("Bad knee. Why is this so?", "knee"),
        (f"My knee hurts {'and I am tired ' * 12}. Why is this so?", "knee"),
        ("My knee hurts. I am old. I am from Leeds. I have a cat. Why is this so?", "knee"),
        ("Why is this so?", "why"),
    ],
)
def test_a_question_stays_alone_that_names_what_it_asks_or_has_no_statement(
    small: Encoder, text: str, probable: str
) -> None:
    (last,) = [candidate(text, s, None) for s in split_sentences(text)][-1:]
    assert answer(small, text, probable) == last.text
