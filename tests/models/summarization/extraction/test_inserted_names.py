"""Which names a question lacks, and how they are put into it."""

from __future__ import annotations

import pytest

from models.drugs import DrugLexicon
from models.encoder.model import Encoder
from models.summarization.extraction.answer_candidates import candidate
from models.summarization.extraction.extractor import topics
from models.summarization.extraction.focus import Focus
from models.summarization.extraction.inserted_names import (
    FEATURES,
    Insertable,
    choose,
    distinct,
    insertables,
    repeats,
    with_allergy,
    with_names,
    with_topic,
)
from models.summarization.extraction.message import messages
from models.summarization.medical_entities import OwnRecogniser
from models.types import Span

MELATONIN = Focus(Span(0, 9), "melatonin", {"drug"})
GOUT = Focus(Span(0, 4), "gout", {"term"})


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Does it mix with tea?", "Gout: does it mix with tea?"),
        ("How long?", "Gout: how long?"),
        ("A cure?", "Gout: a cure?"),
        ("I need help", "Gout: I need help"),
        ("I'm afraid", "Gout: I'm afraid"),
        ("MRI or CT?", "Gout: MRI or CT?"),
        ("IS it bad?", "Gout: IS it bad?"),
        ("Zoloft or tea?", "Gout: Zoloft or tea?"),
    ],
)
def test_a_topic_stands_before_a_question(question: str, answer: str) -> None:
    assert with_topic(question, GOUT) == answer


def test_other_names_stand_behind_the_question_but_not_those_that_another_has() -> None:
    assert with_names("Is it safe?", [GOUT, MELATONIN]) == "Is it safe? (gout, melatonin)"
    assert with_names("Is it safe?", []) == "Is it safe?"
    itch = Focus(Span(7, 14), "itching", {"term"})
    whole = Focus(Span(0, 14), "vulvar itching", {"phrase"})
    assert distinct([whole, itch, GOUT, whole]) == [whole, GOUT]
    assert distinct([itch, whole]) == [itch, whole]


LEXICONS = OwnRecogniser(None, ["gout"], DrugLexicon({"zoloft": "sertraline", "advil": "ibuprofen"}))
TEXT = "I take Zoloft for years and got gout. Is it safe? I also have Advil."


def offered(small: Encoder) -> list[Insertable]:
    (message,) = messages(small, LEXICONS, [TEXT])
    (about,) = topics(small, [message])
    chosen = candidate(TEXT, Span(38, 49), None)
    assert chosen.text == "Is it safe?"
    likelihood = [0.2 + 0.1 * i for i in range(len(about.found))]
    return insertables(message, chosen, about.found, about.features, likelihood)


def test_names_that_the_question_lacks_are_offered_with_their_features(small: Encoder) -> None:
    found = {o.focus.text: dict(zip(FEATURES, o.features, strict=True)) for o in offered(small)}
    assert set(found) == {"Zoloft", "gout", "Advil"}
    assert found["Zoloft"]["before"] == found["gout"]["before"] == 1
    assert found["Advil"]["before"] == 0
    assert found["gout"]["distance"] < found["Zoloft"]["distance"] < found["Advil"]["distance"]
    assert (found["Zoloft"]["it_drug"], found["Zoloft"]["it_other"]) == (1, 0)
    assert (found["gout"]["it_drug"], found["gout"]["it_other"]) == (0, 1)
    assert [name for name, row in found.items() if row["first"]] == ["Advil"]


def test_the_most_probable_names_are_chosen_and_no_word_twice(small: Encoder) -> None:
    names = offered(small)
    assert choose(names, [0.5, 0.9, 0.6], 0.1) == [1, 2]
    assert choose(names, [0.5, 0.9, 0.6], 0.7) == [1]
    assert choose([names[0], names[0]], [0.5, 0.9], 0.1) == [1]


@pytest.mark.parametrize(
    ("answer", "name", "source", "again"),
    [
        ("Advil: is it safe?", "ibuprofen", "drug", True),
        ("Is Advil safe?", "Advil 200", "drug", True),
        ("Which diabetic can take it?", "diabetes", "term", True),
        ("Does anything help the seizures?", "seizure", "term", True),
        ("Is it from drinking?", "drink", "key", True),
        ("Tapeworm infection: how do I get rid of it?", "parasite infection", "phrase", True),
        ("Does lead poisoning last?", "lead paint poisoning", "key", True),
        ("Do shrimp allergies subside?", "food allergy", "key", True),
        ("Can cord blood stem cells help?", "babys cordon blood", "key", True),
        ("Is my nail fungus contagious?", "toe nail fungus", "key", True),
        ("Advil: is it safe?", "Zoloft", "drug", False),
        ("Thyroid stimulating: why?", "thyroxine", "drug", False),
        ("Is prednisone safe?", "prednisolone", "drug", False),
        ("Can I take it for prostate cancer?", "breast cancer", "term", False),
        ("What is hepatitis C?", "hepatitis B", "term", False),
        ("WPW heart condition: how is it treated?", "IHSS heart condition", "key", False),
        ("How near is the mass?", "suprasellar mass", "key", False),
        ("How can we revive her kidneys?", "kidney failure", "key", False),
        ("Does he have diabetes?", "Type 2 diabetes", "key", False),
        ("Is it safe?", "gout", "term", False),
    ],
)
def test_a_name_in_brackets_says_more_than_the_answer(
    answer: str, name: str, source: str, again: bool
) -> None:
    drugs = DrugLexicon(
        {"advil": "ibuprofen", "ibuprofen": "ibuprofen", "advil 200": "ibuprofen", "zoloft": "sertraline"}
    )
    assert repeats(answer, Focus(Span(0, len(name)), name, {source}), drugs) is again


@pytest.mark.parametrize(
    ("front", "shown_as"),
    [
        ("I am allergic to ", "allergic to gout"),
        ("I am allergic to eggs and ", "allergic to gout"),
        ("He has a severe allergy to ", "allergy to gout"),
        ("an allergy to cow's ", "allergy to gout"),
        ("I am not allergic to ", "gout"),
        ("I am allergic to eggs but took ", "gout"),
        ("I am allergic to it. I have ", "gout"),
        ("I am allergic to eggs taking ", "gout"),
    ],
)
def test_what_the_writer_is_allergic_to_is_named_with_the_allergy(front: str, shown_as: str) -> None:
    text = f"{front}gout. Is it safe?"
    named = with_allergy(text, Focus(Span(len(front), len(front) + 4), "gout", {"drug"}))
    assert named.text == shown_as
    assert with_topic("Is it safe?", named) == f"{shown_as.capitalize()}: is it safe?"
