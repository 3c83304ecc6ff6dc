"""The short question: a sentence of the text, word for word, preferably one that asks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from models.drugs import DrugLexicon
from models.encoder.model import Encoder
from models.summarization.generation import Written
from models.summarization.medical_entities import OwnRecogniser
from models.summarization.model import SummarizationModel, asks, candidates
from models.types import ShortQuestion

TEXTS = st.one_of(
    st.text(min_size=1, max_size=120),
    st.lists(
        st.sampled_from(
            ["SUBJECT:", "message : ", "Can", "tea", "?", ".", "!", " ", "\n", "Re:", "\0", "\U0001f600"]
        ),
        min_size=1,
        max_size=25,
    ).map("".join),
)


@pytest.fixture(scope="module")
def model(mini: Encoder) -> SummarizationModel:
    return SummarizationModel(mini)


@pytest.mark.parametrize(
    ("sentence", "asking"),
    [
        ("Is tea fine?", True),
        ('He asked "why?"', True),
        ("(is it?)", True),
        ("what foods to avoid", True),
        ("WILL it pass", True),
        ("anybody here on it", True),
        ("Does anyone know", True),
        ("I take metformin.", False),
        ("Iszatech helps.", False),
        ("Howard takes it.", False),
        ("Tell me how it works.", False),
        ("", False),
        ("why", True),
    ],
)
def test_a_sentence_asks_by_its_mark_or_by_its_first_word(sentence: str, asking: bool) -> None:
    assert asks(sentence) is asking


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("On it for years. Can it cause hair loss? Thanks.", ["Can it cause hair loss?"]),
        ("Is it safe? I wonder. Which dose?", ["Is it safe?", "Which dose?"]),
        ("On it for years. Thanks.", ["On it for years.", "Thanks."]),
        ("SUBJECT: metformin\nMESSAGE: Can it cause hair loss?", ["Can it cause hair loss?"]),
        ("SUBJECT: metformin\nMESSAGE:\nthanks", ["metformin", "thanks"]),
        ("Subject :  gout", ["gout"]),
        ("Subjective: gout", ["Subjective: gout"]),
        ("tell me about gout", ["tell me about gout"]),
        ("SUBJECT:", ["SUBJECT:"]),
        (" ", [" "]),
    ],
)
def test_candidates_are_what_asks_or_else_everything_without_field_names(
    text: str, wanted: list[str]
) -> None:
    assert [text[s.start : s.end] for s in candidates(text)] == wanted


@given(TEXTS)
@example("re: re: re:")
def test_every_text_has_a_candidate_inside_it(text: str) -> None:
    spans = candidates(text)
    assert spans
    assert all(s.end <= len(text) for s in spans)
    assert all(a.end <= b.start for a, b in pairwise(spans))


@settings(deadline=None, max_examples=40)
@given(st.lists(TEXTS, max_size=4))
def test_the_short_question_stands_verbatim_in_the_text(small: Encoder, batch: list[str]) -> None:
    found = SummarizationModel(small).predict(batch)
    assert len(found) == len(batch)
    for text, short in zip(batch, found, strict=True):
        assert short.text
        assert short.text == text[short.start : short.end]
        assert short.method == "extractive"
        assert -1 <= short.score <= 1.0001


def test_the_asking_sentence_nearest_to_the_whole_is_chosen(model: SummarizationModel) -> None:
    text = (
        "My father takes warfarin and likes spinach. What foods should he avoid with warfarin? Is tea fine?"
    )
    (short,) = model.predict([text])
    assert short.text == "What foods should he avoid with warfarin?"
    (start, end) = (text.index("What"), text.index("What") + len(short.text))
    assert (short.start, short.end) == (start, end)
    similarity = model.encoder.embed([text, short.text])
    assert short.score == pytest.approx(float(similarity[0] @ similarity[1]), abs=1e-3)


def test_a_statement_is_chosen_only_where_nothing_asks(model: SummarizationModel) -> None:
    with_question, without = model.predict(
        ["Metformin and hair loss. Metformin makes hair fall out. ok?", "Metformin and hair loss. Bye."]
    )
    assert with_question.text == "ok?"
    assert without.text == "Metformin and hair loss."


def test_a_text_of_one_sentence_is_its_own_short_question(model: SummarizationModel) -> None:
    (short,) = model.predict(["tell me about gout"])
    assert short.text == "tell me about gout"
    assert short.score == pytest.approx(1.0, abs=1e-3)


def test_texts_do_not_mix_in_a_batch(model: SummarizationModel) -> None:
    batch = ["Is tea fine? Thanks.", "gout", "Can it hurt? Can it hurt? I ask."]
    assert [s.text for s in model.predict(batch)] == ["Is tea fine?", "gout", "Can it hurt?"]
    assert model.predict([]) == []


class Told:
    """Writes what it is told, whatever the text."""

    def __init__(self, *texts: str) -> None:
        self.found = [Written(text, 0.5) for text in texts]

    def write(self, texts: Sequence[str]) -> list[list[Written]]:
        return [self.found for _ in texts]


def guarded(small: Encoder, *texts: str) -> SummarizationModel:
    lexicon = DrugLexicon({"zoloft": "sertraline", "sertraline": "sertraline", "aspirin": "aspirin"})
    return SummarizationModel(small, Told(*texts), OwnRecogniser(None, ["gout"], lexicon))


QUESTION = "I take Zoloft. Does it hurt?"


@pytest.mark.parametrize(
    ("written", "answer"),
    [
        (["Is Zoloft bad?"], "Is Zoloft bad?"),
        (["Is it bad?"], "Is it bad?"),
        # Another name of the same drug names nothing new.
        (["Is sertraline bad?"], "Is sertraline bad?"),
        (["Is aspirin bad?", "Is Zoloft bad?"], "Is Zoloft bad?"),
        (["Does Zoloft cause gout?", "Is aspirin bad?"], None),
        ([""], None),
        ([], None),
    ],
)
def test_what_names_something_else_is_not_taken(
    small: Encoder, written: list[str], answer: str | None
) -> None:
    (short,) = guarded(small, *written).predict([QUESTION])
    if answer is None:
        start = QUESTION.index("Does")
        assert (short.text, short.method) == ("Does it hurt?", "extractive")
        assert (short.start, short.end) == (start, len(QUESTION))
    else:
        assert short == ShortQuestion(answer, "abstractive", 0.5)


def test_each_question_of_a_batch_is_guarded_by_itself(small: Encoder) -> None:
    found = guarded(small, "Is aspirin bad?").predict([QUESTION, "Aspirin?", "Why?"])
    assert [s.method for s in found] == ["extractive", "abstractive", "extractive"]
    assert guarded(small, "x").predict([]) == []


def test_a_word_that_is_none_is_not_taken(small: Encoder) -> None:
    model = guarded(small, "Is zolofta bad?", "Are Zolofts bad?")
    assert model.predict([QUESTION])[0].text == "Is zolofta bad?"
    model.known = frozenset({"is", "are", "bad"})
    assert model.predict([QUESTION])[0].text == "Are Zolofts bad?"
    model.known = frozenset({"is", "bad"})
    assert model.predict([QUESTION])[0].method == "extractive"


def test_a_writer_without_a_recogniser_is_refused(small: Encoder) -> None:
    with pytest.raises(ValueError, match="recognised"):
        SummarizationModel(small, Told("x"))
