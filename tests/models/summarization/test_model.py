"""The short question: a sentence of the text, or a written summary that names nothing else."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.drugs import DrugLexicon
from models.encoder.model import Encoder
from models.summarization.decoder import Summary
from models.summarization.medical_entities import OwnRecogniser
from models.summarization.model import SummarizationModel
from models.types import ShortQuestion
from tests.models.summarization.messages import MESSAGES


@pytest.fixture(scope="module")
def model(mini: Encoder) -> SummarizationModel:
    return SummarizationModel(mini)


@settings(deadline=None, max_examples=40)
@given(st.lists(MESSAGES, max_size=4))
def test_an_extractive_answer_is_a_verbatim_part_of_the_text(small: Encoder, batch: list[str]) -> None:
    answers = SummarizationModel(small).predict(batch)
    assert len(answers) == len(batch)
    for text, short in zip(batch, answers, strict=True):
        assert short.text
        assert short.text == text[short.start : short.end]
        assert short.method == "extractive"
        assert -1 <= short.score <= 1.0001


def test_the_question_nearest_to_the_whole_text_is_chosen(model: SummarizationModel) -> None:
    text = (
        "My father takes warfarin and likes spinach. What foods should he avoid with warfarin? Is tea fine?"
    )
    (short,) = model.predict([text])
    assert short.text == "What foods should he avoid with warfarin?"
    (start, end) = (text.index("What"), text.index("What") + len(short.text))
    assert (short.start, short.end) == (start, end)
    similarity = model.encoder.embed([text, short.text])
    assert short.score == pytest.approx(float(similarity[0] @ similarity[1]), abs=1e-3)


def test_a_statement_is_chosen_only_if_there_is_no_question(model: SummarizationModel) -> None:
    with_question, without = model.predict(
        ["Metformin and hair loss. Metformin makes hair fall out. ok?", "Metformin and hair loss. Bye."]
    )
    assert with_question.text == "ok?"
    assert without.text == "Metformin and hair loss."


def test_texts_of_a_batch_are_independent_and_older_answers_are_read(model: SummarizationModel) -> None:
    (short,) = model.predict(["tell me about gout"])
    assert short.text == "tell me about gout"
    assert short.score == pytest.approx(1.0, abs=1e-3)
    batch = ["Is tea fine? Thanks.", "gout", "Can it hurt? Can it hurt? I ask."]
    assert [s.text for s in model.predict(batch)] == ["Is tea fine?", "gout", "Can it hurt?"]
    assert model.predict([]) == []
    stored = [{"text": "Why?", "method": "extractive", "score": 0.5, "start": 0, "end": 4}]
    assert SummarizationModel.canary_outputs(stored) == [ShortQuestion("Why?", "extractive", 0.5, 0, 4)]


class FixedWriter:
    """Writes the same summaries for every text."""

    def __init__(self, *summaries: str) -> None:
        self.summaries = [Summary(text, 0.5) for text in summaries]

    def write(self, texts: Sequence[str]) -> list[list[Summary]]:
        return [self.summaries for _ in texts]


def model_writing(small: Encoder, *summaries: str) -> SummarizationModel:
    lexicon = DrugLexicon({"zoloft": "sertraline", "sertraline": "sertraline", "aspirin": "aspirin"})
    return SummarizationModel(small, FixedWriter(*summaries), OwnRecogniser(None, ["gout"], lexicon))


QUESTION = "I take Zoloft. Does it hurt?"


@pytest.mark.parametrize(
    ("written", "answer"),
    [
        (["Is Zoloft bad?"], "Is Zoloft bad?"),
        (["Is it bad?"], "Is it bad?"),
        # Another name of the same drug is no other entity.
        (["Is sertraline bad?"], "Is sertraline bad?"),
        (["Is aspirin bad?", "Is Zoloft bad?"], "Is Zoloft bad?"),
        (["Does Zoloft cause gout?", "Is aspirin bad?"], None),
        ([""], None),
        ([], None),
    ],
)
def test_no_summary_names_another_entity(small: Encoder, written: list[str], answer: str | None) -> None:
    (short,) = model_writing(small, *written).predict([QUESTION])
    if answer is None:
        start = QUESTION.index("Does")
        assert (short.text, short.method) == ("Does it hurt?", "extractive")
        assert (short.start, short.end) == (start, len(QUESTION))
    else:
        assert short == ShortQuestion(answer, "abstractive", 0.5)


def test_each_summary_is_checked_by_a_recogniser_against_its_own_text(small: Encoder) -> None:
    answers = model_writing(small, "Is aspirin bad?").predict([QUESTION, "Aspirin?", "Why?"])
    assert [s.method for s in answers] == ["extractive", "abstractive", "extractive"]
    assert model_writing(small, "x").predict([]) == []
    with pytest.raises(ValueError, match="recognised"):
        SummarizationModel(small, FixedWriter("x"))


LOADED = """
import sys
from models.loading import load
from models.releases.store import bundled, open_release
load(open_release(bundled("summarization"))).model.predict(["My knee hurts. Is there a cure for gout?"])
print(*sorted(name for name in sys.modules if name.startswith("models.")))
"""


@pytest.mark.slow
@pytest.mark.usefixtures("shipped_releases")
def test_the_bundled_release_imports_nothing_but_what_its_manifest_names() -> None:
    answer = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    loaded = answer.stdout.split()
    assert "models.summarization.extraction.extractor" in loaded
    others = ("models.summarization.decoder", "models.ner", "models.assertion", "models.relation")
    assert [name for name in loaded if name.startswith(others)] == []
