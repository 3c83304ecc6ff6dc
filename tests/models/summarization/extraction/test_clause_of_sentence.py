"""Which part of a sentence asks."""

from __future__ import annotations

import pytest
from hypothesis import given

from models.summarization.extraction.clause_of_sentence import asking_clause, requests
from models.summarization.extraction.question_form import as_question
from tests.models.summarization.messages import MESSAGES


def shown(sentence: str) -> str:
    return as_question(sentence, asking_clause(sentence))


@pytest.mark.parametrize(
    ("sentence", "answer"),
    [
        ("Is tea fine?", "Is tea fine?"),
        ("Hi, can you please tell me what causes gout?", "What causes gout?"),
        ("i would like to know how long it lasts", "How long does it last?"),
        ("My question is: does metformin hurt the kidneys", "Does metformin hurt the kidneys?"),
        ("is it safe with warfarin, thanks in advance", "Is it safe with warfarin?"),
        ("Gout MESSAGE: How does one live with it?", "How does one live with it?"),
        ("Gout message: why?", "Gout message: why?"),
        ("Hi there, can I take Advil?", "Can I take Advil?"),
        ("Hello everyone does it hurt much?", "Does it hurt much?"),
        ("Hi Dr. Smith, can I drink wine?", "Can I drink wine?"),
        ("Good evening doctor, is it safe?", "Is it safe?"),
        ("Hi [NAME], is it safe?", "Is it safe?"),
        ("- Does it cause gout?", "Does it cause gout?"),
        ("2) does it cause gout", "Does it cause gout?"),
        ("...can it cause gout?", "Can it cause gout?"),
        ("5 mg or -5 degrees?", "5 mg or -5 degrees?"),
        ("To whom it may concern: is it safe for him?", "Is it safe for him?"),
        ("I would be grateful if you could let me know how long it lasts.", "How long does it last?"),
        ("We'd appreciate it if someone could tell us if it is safe.", "Is it safe?"),
        ("P.S. I forgot to ask: can I drink wine?", "Can I drink wine?"),
        ("PS can I drink wine?", "Can I drink wine?"),
        ("Who can tell me how long it takes to work?", "How long does it take to work?"),
        ("Can you advise me as to where I can find it?", "Where can I find it?"),
        ("Could you advise us what it does?", "What does it do?"),
        ("Can you advise me on gout and what to eat?", "Can you advise me on gout and what to eat?"),
        ("Can anyone explain to me what it does?", "What does it do?"),
        ("Can you tell us if it is safe?", "Is it safe?"),
        # What remains must be a clause.
        ("Please help", "Please help"),
        ("thank you", "Thank you"),
        (", , . thanks", ", , . thanks"),
        ("I wonder if it is safe?", "Is it safe?"),
        ("Please tell me if I have gout is it bad", "Please tell me if I have gout is it bad"),
        ("I would like to know about gout.", "I would like to know about gout."),
        ("My question: are the two safe together?", "Are the two safe together?"),
        ("Anyway what should he eat and avoid?", "What should he eat and avoid?"),
        ("What I want to know is can you have it twice?", "Can you have it twice?"),
        ("What I keep wondering about: does this stunt growth?", "Does this stunt growth?"),
        ("What I want to know is if it is safe.", "Is it safe?"),
        ("What I take is a pill for gout.", "What I take is a pill for gout."),
    ],
)
def test_preamble_and_thanks_are_cut_off(sentence: str, answer: str) -> None:
    assert shown(sentence) == answer


STORY = " ".join(["my husband took it for years and felt well until last spring when he fell"] * 2)


@pytest.mark.parametrize(
    ("sentence", "answer"),
    [
        (f"{STORY}, so is it safe to stop it at once?", "Is it safe to stop it at once?"),
        (f"{STORY} and how long does it stay in the body", "How long does it stay in the body?"),
        # The earliest of two clauses, if that is short enough.
        (f"{STORY}, can he drink, and can he drive?", "Can he drink, and can he drive?"),
        (f"{STORY}, can he?", f"{STORY[0].upper()}{STORY[1:]}, can he?"),
        (STORY, STORY[0].upper() + STORY[1:]),
    ],
)
def test_a_long_sentence_is_cut_to_a_clause_in_a_questions_word_order(sentence: str, answer: str) -> None:
    assert shown(sentence) == answer


def test_a_short_sentence_and_what_says_more_of_somebody_stay_whole() -> None:
    more = "gave me a bottle of capsules from the shop and says that it brought hers down by a third"
    sentence = f"My neighbour, who is a great believer in all such things as these here, {more}."
    assert shown(sentence) == sentence
    assert shown("He fell, is that bad?") == "He fell, is that bad?"


@pytest.mark.parametrize(
    ("sentence", "asked"),
    [
        ("Kindly help me to cure this white spot.", True),
        ("Please send me any info on botanical medicines.", True),
        ("Please can you suggest a diet for gout", True),
        ("pls advise what to do about my rash", True),
        ("I need stronger anti diarrhea meds for my trip.", True),
        ("We are looking for a doctor for her medical care.", True),
        ("I'm looking to buy the cream", True),
        ("I would like to find out more on this duplication.", True),
        ("I am in need of a specialist for MDS.", True),
        ("We are just trying to find a registry for her.", True),
        ("Looking for a DNA test for mental illness.", True),
        ("Information on sarcoidosis", True),
        ("If you could get back to me about the latest research that would be great.", True),
        ("My doctor needs the results by Friday.", False),
        ("I need to go to the clinic each week.", False),
        ("She told me to send the form.", False),
        ("I am looking pale since May.", False),
        ("I found some information on it last year.", False),
        ("We are trying to get these blades banned.", False),
        ("My aunt is seeking a divorce.", False),
        ("The pharmacist was looking for the box.", False),
    ],
)
def test_a_request_asks_without_the_form_of_a_question(sentence: str, asked: bool) -> None:
    assert requests(sentence) is asked


@given(MESSAGES)
def test_the_clause_is_a_part_of_the_sentence(sentence: str) -> None:
    part = asking_clause(sentence)
    assert 0 <= part.start < part.end <= len(sentence)
