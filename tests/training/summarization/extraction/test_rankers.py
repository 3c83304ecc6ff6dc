"""What the rankers learn from few questions."""

from __future__ import annotations

import pytest

from models.drugs import DrugLexicon
from models.encoder.model import Encoder
from models.summarization.extraction.extractor import Extractor, Rankers
from models.summarization.extraction.message import messages
from models.summarization.extraction.ranker import LinearRanker
from models.summarization.medical_entities import OwnRecogniser
from training.summarization.data import Pair
from training.summarization.extraction.key_words import keyed, with_key_words
from training.summarization.extraction.rankers import train

LEXICONS = OwnRecogniser(
    None, ["rash", "gout"], DrugLexicon({"zoloft": "sertraline", "advil": "ibuprofen", "lipitor": "x"})
)
PAIRS = [
    Pair(
        "1",
        "I got a rash from Zoloft. My aunt says hello. Is it safe to go on?",
        "Is it safe to go on with Zoloft?",
    ),
    Pair("2", "Advil helps my gout. I am old. Is it safe to take for years?", "Is Advil safe for years?"),
    Pair("4", "My dog is ill. Is it safe to drink milk? I take Zoloft.", "Is milk safe with Zoloft?"),
    Pair("5", "I have Lipitor. My wife sings. Is it bad for the liver?", "Is Lipitor bad for the liver?"),
    Pair("3", "We moved in May. Should I stop it now? I take Lipitor, no rash.", "Should I stop Lipitor?"),
]


@pytest.fixture(scope="module")
def extractor(mini: Encoder) -> Extractor:
    read = with_key_words(messages(mini, LEXICONS, [p.question for p in PAIRS]), PAIRS)
    weights = train(mini, LEXICONS.drugs, PAIRS, read)
    focus, answer, insertion = (
        LinearRanker(w, tuple(w)) for w in (weights.focus, weights.answer, weights.insertion)
    )
    rankers = Rankers(focus, answer, insertion, weights.key_words)
    return Extractor(mini, LEXICONS, rankers, weights.thresholds)


def test_what_is_in_the_written_questions_is_learnt_and_holds_for_another(extractor: Extractor) -> None:
    answers = [short.text for short in extractor.extract([p.question for p in PAIRS])]
    for answer, medicine, question in zip(
        answers,
        ("Zoloft", "Advil", "Zoloft", "Lipitor", "Lipitor"),
        ("safe to go on?", "safe to take for years?", "drink milk?", "for the liver?", "stop it now?"),
        strict=True,
    ):
        assert medicine in answer and question in answer
    (short,) = extractor.extract(["My gout is back. Is it safe to take daily? My son bought me Advil."])
    assert "is it safe to take daily?" in short.text.lower()
    assert "Advil" in short.text


def test_texts_without_a_choice_or_a_word_of_their_message_are_refused(mini: Encoder) -> None:
    pairs = [Pair(str(i), f"Is Zoloft {i} safe daily?", "Is Zoloft safe?") for i in range(2)]
    read = with_key_words(messages(mini, LEXICONS, [p.question for p in pairs]), pairs)
    with pytest.raises(ValueError, match="two candidates"):
        train(mini, LEXICONS.drugs, pairs, read)
    strange = [Pair(str(i), "Is Zoloft safe?", "What now, please?") for i in range(3)]
    unread = messages(mini, LEXICONS, [p.question for p in strange])
    with pytest.raises(ValueError, match="key words: too few"):
        with_key_words(unread, strange)


def test_key_words_of_a_message_are_by_a_regression_over_the_others(mini: Encoder) -> None:
    """What it learns from the message itself would be too good to fit a ranker with."""
    read = messages(mini, LEXICONS, [p.question for p in PAIRS])
    found = with_key_words(read, PAIRS)
    assert all(m.keys != keyed(m, found.model).keys for m in found.messages)
    first = with_key_words(read[:4], PAIRS[:4])
    # Of five messages each is a fold, so that the fifth is judged by what the other four teach.
    assert found.messages[4].keys == keyed(read[4], first.model).keys
