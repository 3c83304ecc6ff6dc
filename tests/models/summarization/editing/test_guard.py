"""What an edit must keep of a message: names, numbers, negations, and the kind and topic of its question."""

from __future__ import annotations

import pytest

from models.encoder.model import Encoder
from models.summarization.editing.editor import Editor
from models.summarization.editing.edits import FEATURES, edits
from models.summarization.editing.guard import Limits
from models.summarization.editing.intent import intent_of
from models.summarization.editing.openings import KINDS
from models.summarization.extraction import candidates
from models.summarization.extraction.ranker import LinearRanker
from models.summarization.model import SummarizationModel
from models.types import Span
from tests.models.summarization.editing.made import Always, answer, editor, extractor


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        # The kind is likely, but nothing asks it.
        ("Does gout hurt at night?", {"treatment": 0.9}),
        # A second name, a number, a negation or another word would be lost.
        ("As kidney failure is worse, what is the treatment for gout?", {"treatment": 0.9}),
        ("At 70, what is the treatment for gout?", {"treatment": 0.9}),
        ("What is the treatment for gout without surgery?", {"treatment": 0.9}),
        ("What is the natural treatment for gout?", {"treatment": 0.9}),
        # One question for yes or no, and one of two questions.
        ("Can Zoloft cause gout?", {"cause": 0.9}),
        ("Is Advil a treatment for gout?", {"treatment": 0.9}),
        ("What causes gout, and what can I eat?", {"cause": 0.9}),
        # A medicine has no treatment, and an illness no ingredients.
        ("What is the treatment for Zoloft?", {"treatment": 0.9}),
        ("What are the ingredients of gout?", {"ingredients": 0.9}),
        # A device is no illness.
        ("What are the treatments for my CPAP?", {"treatment": 0.9}),
        # Another kind of person is asked for.
        ("Who treats gout?", {"treatment": 0.9}),
        # Not likely enough for a statement.
        ("Gout treatment in the news.", {"treatment": 0.5}),
        ("I would like information on EPI743 for gout.", {"treatment": 0.9}),
    ],
)
def test_where_something_would_be_lost_the_answer_stays_as_it_is(
    small: Encoder, text: str, kinds: dict[str, float]
) -> None:
    model = SummarizationModel(small, extractor=extractor(small))
    assert answer(small, text, **kinds).text == model.predict([text])[0].text


LOOSE = Limits(asked=2, stated=5, stated_kind=0.4, helping=0.6, outside=0.3, listing=0.4)


@pytest.mark.parametrize(
    ("text", "kinds", "expected"),
    [
        ("What is the natural treatment for gout?", {"treatment": 0.9}, "What are the treatments for gout?"),
        ("My gout is back. Can you help us?", {"treatment": 0.9}, "What are the treatments for gout?"),
        (
            "I had gout in May. Any information?",
            {"information": 0.9},
            "Where can I find information on gout?",
        ),
        ("I need information on gout without surgery.", {"information": 0.9}, None),
        # What is asked about an illness is no less than the illness.
        ("Please send information on clinical trials for gout.", {"information": 0.9}, None),
        ("Please send information about nutrition in my gout.", {"information": 0.9}, None),
        (
            "Please send information on the illness of gout.",
            {"information": 0.9},
            "Where can I find information on gout?",
        ),
        # A word that asks is no topic.
        ("My MS is called inherited. Is it inherited?", {"inheritance": 0.9}, None),
        # A name, a number or a negation is never lost, and a question for yes or no loses no word.
        ("As kidney failure is worse, what is the treatment for gout?", {"treatment": 0.9}, None),
        ("At 70, what is the treatment for gout?", {"treatment": 0.9}, None),
        ("What is the treatment for gout without surgery?", {"treatment": 0.9}, None),
        ("Does surgery cure gout?", {"treatment": 0.9}, None),
        # What is caused is a part of the question, and what is asked of something else.
        ("Why would gout switch off an eye?", {"cause": 0.9}, None),
        ("SUBJECT: gout MESSAGE: How are dry eyes and red hands treated?", {"treatment": 0.9}, None),
        # So is another kind of question.
        ("Where to get articles and treatment for gout?", {"treatment": 0.9}, None),
        # More words than the limit; help that is not surely a treatment; a list in a statement.
        ("What natural or herbal or ayurvedic treatment is for gout?", {"treatment": 0.9}, None),
        ("How can I help people with gout?", {"treatment": 0.5}, None),
        ("As treatment of gout has side effects I would like tea.", {"information": 0.1}, None),
    ],
)
def test_within_limits_a_question_may_lose_words(
    small: Encoder, text: str, kinds: dict[str, float], expected: str | None
) -> None:
    edits_ = editor(**kinds)
    edits_.limits = LOOSE
    (kept,) = extractor(small).extract([text])
    (short,) = extractor(small, edits_).extract([text])
    assert short.text == (expected or kept.text)


@pytest.mark.parametrize(("lead", "allowed"), [("My gout is bad.", True), ("Zoloft gave me gout.", False)])
def test_a_medicine_of_the_sentence_in_front_is_not_lost(small: Encoder, lead: str, allowed: bool) -> None:
    text = f"{lead} Is there a cure?"
    (found,) = extractor(small).find([text])
    parts = (Span(0, len(lead)), Span(len(lead) + 1, len(text)))
    chosen = candidates.joined(*(candidates.candidate(text, part, None) for part in parts))
    kept = found.kept._replace(chosen=chosen, text=chosen.text, names=[], sure=False)
    assert bool(edits(intent_of(found, kept, [0.9] * len(KINDS)))) is allowed


def test_what_someone_is_allergic_to_is_no_illness(small: Encoder) -> None:
    text = "She has an allergy to gout. What are the treatments for it?"
    assert answer(small, text, treatment=0.9).method == "extractive"


def test_the_class_of_an_illness_is_not_lost(small: Encoder) -> None:
    ranker = LinearRanker({name: float(name == "kind") for name in FEATURES}, FEATURES)
    generous = Editor(Always(prognosis=0.9), ranker, -99.0, Limits(asked=3))
    model = SummarizationModel(small, extractor=extractor(small, generous))
    texts = [f"What is the prognosis of lupus in a man of {said}?" for said in ("class IV", "class four")]
    one, other = model.predict(texts)
    assert "class IV" in one.text
    assert other.text == "What is the prognosis for lupus?"
