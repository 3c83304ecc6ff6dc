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
    filled,
    insertables,
    is_added,
    with_allergy,
)
from models.summarization.extraction.message import messages
from models.summarization.medical_entities import OwnRecogniser
from models.types import Span

MELATONIN = Focus(Span(0, 9), "melatonin", {"drug"})
WARFARIN = Focus(Span(0, 8), "warfarin", {"drug"})
GOUT = Focus(Span(0, 4), "gout", {"term"})


def shown(question: str, focus: Focus, *, only: bool = True) -> str:
    return filled(question, focus, [], only_medicine=only)


@pytest.mark.parametrize(
    ("question", "focus", "answer"),
    [
        ("Does it mix with tea?", MELATONIN, "Does melatonin mix with tea?"),
        ("Can this cause a rash?", MELATONIN, "Can melatonin cause a rash?"),
        # "It" may be the weather, or what follows.
        ("Is it safe to drink?", MELATONIN, "Melatonin: is it safe to drink?"),
        ("Does it take long?", MELATONIN, "Melatonin: does it take long?"),
        ("Can it cause a rash?", GOUT, "Gout: can it cause a rash?"),
        ("Could be the pill?", MELATONIN, "Could be melatonin?"),
        ("Can I take it with my blood thinner?", WARFARIN, "Can I take it with warfarin?"),
        ("Can this medicine cause a rash?", MELATONIN, "Can melatonin cause a rash?"),
        ("Is the pill box safe?", MELATONIN, "Melatonin: is the pill box safe?"),
        ("What else is there for this?", GOUT, "What else is there for gout?"),
        ("Is this disease inherited?", GOUT, "Gout: is this disease inherited?"),
        ("How do I live with my condition?", GOUT, "How do I live with gout?"),
        ("How do you treat it?", GOUT, "How do you treat gout?"),
        ("How do you treat it at home?", GOUT, "Gout: how do you treat it at home?"),
        ("How long?", GOUT, "Gout: how long?"),
        ("A cure?", GOUT, "Gout: a cure?"),
        ("I need help", GOUT, "Gout: I need help"),
        ("I'm afraid", GOUT, "Gout: I'm afraid"),
        ("MRI or CT?", GOUT, "Gout: MRI or CT?"),
        ("IS it bad?", GOUT, "Gout: IS it bad?"),
        ("Zoloft or tea?", GOUT, "Gout: Zoloft or tea?"),
    ],
)
def test_a_focus_is_before_a_question_or_for_its_subject(question: str, focus: Focus, answer: str) -> None:
    assert shown(question, focus) == answer


def test_other_names_stand_behind_the_question_but_not_those_that_another_has() -> None:
    assert shown("Is it the pill?", MELATONIN, only=False) == "Melatonin: is it the pill?"
    assert filled("Is it safe?", MELATONIN, [GOUT], only_medicine=True) == "Melatonin: is it safe? (gout)"
    assert (
        filled("Is it safe?", None, [GOUT, MELATONIN], only_medicine=True) == "Is it safe? (gout, melatonin)"
    )
    itch = Focus(Span(7, 14), "itching", {"term"})
    whole = Focus(Span(0, 14), "vulvar itching", {"phrase"})
    assert distinct([whole, itch, GOUT, whole]) == [whole, GOUT]
    assert distinct([itch, whole]) == [itch, whole]


LEXICONS = OwnRecogniser(None, ["gout"], DrugLexicon({"zoloft": "sertraline", "advil": "ibuprofen"}))
TEXT = "I take Zoloft for years and got gout. Is it safe? I also have Advil."


def offered(small: Encoder) -> list[Insertable]:
    (message,) = messages(small, LEXICONS, [TEXT])
    assert not message.one_medicine
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
    assert shown("Is it safe?", named).startswith(f"{shown_as.capitalize()}: is it safe?")


@pytest.mark.parametrize(
    ("said", "added"),
    [
        ("I also have ", True),
        ("She was also diagnosed with ", True),
        ("I also take a ", True),
        ("I have ", False),
        ("Does it also help with ", False),
        ("I also had surgery for ", False),
    ],
)
def test_what_is_only_added_behind_a_question_is_not_its_topic(said: str, added: bool) -> None:
    question = "What can I eat? "
    start = len(question) + len(said)
    name = Focus(Span(start, start + 4), "gout", {"term"})
    assert is_added(f"{question}{said}gout.", name, Span(0, 15)) is added
    assert not is_added(
        f"{said}gout. {question}", Focus(Span(len(said), len(said) + 4), "gout"), Span(start, start + 15)
    )
