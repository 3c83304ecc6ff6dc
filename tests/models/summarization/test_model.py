"""The short question: a sentence of the text."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.encoder.model import Encoder
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
    others = ("models.ner", "models.assertion", "models.relation")
    assert [name for name in loaded if name.startswith(others)] == []
