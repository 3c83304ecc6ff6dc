"""The extractor as a whole."""

from __future__ import annotations

import re

from hypothesis import example, given, settings
from hypothesis import strategies as st

from models.drugs import DrugLexicon
from models.encoder.model import Encoder
from models.summarization.extraction import answer_candidates, focus_features, inserted_names
from models.summarization.extraction.extractor import Extractor, Rankers, Thresholds
from models.summarization.extraction.ranker import LinearRanker
from models.summarization.medical_entities import OwnRecogniser
from models.summarization.model import SummarizationModel
from models.summarization.unasked import asks_nothing
from models.types import ShortQuestion
from tests.models.summarization.messages import MESSAGES

LEXICONS = OwnRecogniser(None, ["gout", "headache"], DrugLexicon({"zoloft": "sertraline"}))


def model(encoder: Encoder, front: float = 0.6, behind: float = 0.6) -> SummarizationModel:
    """With rankers that prefer medicines, and questions."""
    rankers = Rankers(
        LinearRanker(
            {name: float(name == "drug") for name in focus_features.FEATURES}, focus_features.FEATURES
        ),
        LinearRanker(
            {name: 5.0 * (name == "question") for name in answer_candidates.FEATURES},
            answer_candidates.FEATURES,
        ),
        LinearRanker(
            {name: float(name == "drug") for name in inserted_names.FEATURES}, inserted_names.FEATURES
        ),
    )
    return SummarizationModel(
        encoder, extractor=Extractor(encoder, LEXICONS, rankers, Thresholds(0.1, front, behind))
    )


TEXT = "I have a headache since I take Zoloft. Thanks. Hi, can you tell me is it safe to stop?"


def test_the_question_is_answered_with_its_focus_and_the_offsets_of_both(small: Encoder) -> None:
    (short,) = model(small).predict([TEXT])
    assert short.text == "Zoloft: is it safe to stop?"
    assert short.method == "extractive"
    assert TEXT[short.start : short.end] == "Hi, can you tell me is it safe to stop?"
    assert short.focus == "Zoloft"
    assert TEXT[short.focus_start : short.focus_end] == "Zoloft"
    assert 0.9 < short.score <= 1


def test_what_is_improbable_is_left_out_or_in_brackets_and_one_sentence_is_the_answer(small: Encoder) -> None:
    (short,) = model(small, front=0.99, behind=0.99).predict([TEXT])
    assert short.text == "Is it safe to stop?"
    assert (short.focus, short.focus_start, short.focus_end) == (None, None, None)
    (short,) = model(small, front=0.99).predict([TEXT])
    assert (short.text, short.focus) == ("Is it safe to stop? (Zoloft)", "Zoloft")
    (short,) = model(small, behind=0.5).predict([TEXT])
    assert (short.text, short.focus) == ("Zoloft: is it safe to stop? (headache)", "Zoloft")
    assert [s.text for s in model(small).predict(["tell me about gout", "Why?", " "])] == [
        "Tell me about gout",
        "Why?",
        " ",
    ]
    (short,) = model(small).predict(["My left foot hurts in the morning. Why?"])
    assert short.text == "My left foot hurts in the morning."


SAID = "Zoloft gout headache [NAME] is it safe can I MRI ? . , SUBJECT: MESSAGE: please thanks what arthritis"
PARTS = [*SAID.split(), "\n", "diagnosed with", "and how long"]
WORDS = st.lists(st.sampled_from(PARTS), min_size=1, max_size=60).map(" ".join)


@example(["000MESSAGE:"])
@settings(deadline=None, max_examples=60)
@given(st.lists(st.one_of(WORDS, MESSAGES), min_size=1, max_size=4))
def test_an_answer_has_only_words_of_the_text(small: Encoder, batch: list[str]) -> None:
    answers = model(small).predict(batch)
    assert len(answers) == len(batch)
    for text, short in zip(batch, answers, strict=True):
        left = re.findall(r"\w+", text.lower())
        assert all(word in left for word in re.findall(r"\w+", short.text.lower()))
        assert (short.start is None) is asks_nothing(text)
        assert short.start is None or (short.end is not None and short.start <= short.end <= len(text))
        if short.focus is not None:
            assert text[short.focus_start : short.focus_end] == short.focus


@settings(deadline=None, max_examples=10)
@given(st.lists(WORDS, min_size=2, max_size=4))
def test_answers_do_not_depend_on_the_batch(small: Encoder, batch: list[str]) -> None:
    def of(texts: list[str]) -> list[ShortQuestion]:
        return model(small).predict(texts)

    together, alone = of(batch), [of([t])[0] for t in batch]
    assert [s.text for s in together] == [s.text for s in alone]
    assert all(abs(a.score - b.score) < 1e-3 for a, b in zip(together, alone, strict=True))
