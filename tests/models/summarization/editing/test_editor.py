"""The editor as a whole: which openings a message allows, what is refused, and what the record says."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from models.drugs import DrugLexicon
from models.encoder.model import Encoder
from models.summarization.editing.editor import Editor, edited_clause
from models.summarization.editing.edits import FEATURES, edits, kept_features
from models.summarization.editing.guard import Limits
from models.summarization.editing.intent import intent_of
from models.summarization.editing.kinds import KindClassifier, kind_features
from models.summarization.editing.openings import KINDS, LISTED, OPENINGS
from models.summarization.extraction import candidates, focus_features, insertion
from models.summarization.extraction.extractor import Extractor, Rankers, Thresholds
from models.summarization.extraction.ranker import LinearRanker
from models.summarization.medical_entities import OwnRecogniser
from models.summarization.model import SummarizationModel
from models.types import ShortQuestion, Span
from tests.models.summarization.messages import MESSAGES

LEXICONS = OwnRecogniser(
    None,
    ["gout", "lupus", "migraine", "kidney failure", "hereditary angioedema"],
    DrugLexicon({"zoloft": "sertraline", "advil": "ibuprofen"}),
)


class Always(KindClassifier):
    """Gives the same probabilities whatever the message."""

    def __init__(self, **kinds: float) -> None:
        super().__init__(torch.zeros(1, len(KINDS)))
        self.fixed = [kinds.get(kind, 0.05) for kind in KINDS]

    def probabilities(self, features: torch.Tensor) -> list[float]:
        return self.fixed


def extractor(encoder: Encoder, editor: Editor | None = None) -> Extractor:
    """With rankers that prefer names of the lexicons, and questions."""
    rankers = Rankers(
        LinearRanker(
            {n: 5.0 * (n in ("drug", "term")) for n in focus_features.FEATURES}, focus_features.FEATURES
        ),
        LinearRanker({n: 5.0 * (n == "question") for n in candidates.FEATURES}, candidates.FEATURES),
        LinearRanker({n: 3.0 * (n in ("drug", "term")) for n in insertion.FEATURES}, insertion.FEATURES),
    )
    return Extractor(encoder, LEXICONS, rankers, Thresholds(0.1, 0.6, 0.6), editor)


def editor(margin: float = -99.0, **kinds: float) -> Editor:
    """Prefers the most probable kind, and takes any edit that is allowed."""
    ranker = LinearRanker({name: float(name == "kind") for name in FEATURES}, FEATURES)
    return Editor(Always(**kinds), ranker, margin)


def answer(encoder: Encoder, text: str, **kinds: float) -> ShortQuestion:
    model = SummarizationModel(encoder, extractor=extractor(encoder, editor(**kinds)))
    return model.predict([text])[0]


@pytest.mark.parametrize(
    ("text", "kinds", "expected"),
    [
        (
            "Hello. I want to know how to get rid of gout. Thanks.",
            {"treatment": 0.9},
            "What are the treatments for gout?",
        ),
        ("My son has lupus. Is there any cure?", {"treatment": 0.9}, "What are the treatments for lupus?"),
        (
            "Please send me information on gout.",
            {"information": 0.9},
            "Where can I find information on gout?",
        ),
        # "Treatment" ends like a negation and is none.
        (
            "Please tell me what treatment there is for gout",
            {"treatment": 0.9},
            "What are the treatments for gout?",
        ),
        (
            "What is the treatment for gout with kidney failure?",
            {"treatment": 0.9},
            "What are the treatments for gout with kidney failure?",
        ),
        ("Which doctor treats gout?", {"who_to_see": 0.9}, "What kind of doctor treats gout?"),
        (
            "What causes gout and what is the cure?",
            {"cause": 0.9, "treatment": 0.8},
            "What causes gout, and what are the treatments for it?",
        ),
        (
            "Is Zoloft gluten free?",
            {"gluten": 0.9},
            "What are the ingredients of Zoloft and is it gluten free?",
        ),
    ],
)
def test_a_kind_that_is_asked_in_words_gets_its_opening(
    small: Encoder, text: str, kinds: dict[str, float], expected: str
) -> None:
    short = answer(small, text, **kinds)
    assert (short.text, short.method) == (expected, "edited")
    assert short.start is not None and short.end is not None
    assert 0 <= short.score <= 1


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


def test_a_margin_refuses_an_edit(small: Encoder) -> None:
    text = "My son has lupus. Is there any cure?"
    own = extractor(small, editor(margin=99.0, treatment=0.9))
    (short,) = own.extract([text])
    assert (short.text, short.method) == ("Lupus: is there any cure?", "extractive")


def test_a_name_in_place_of_a_pronoun_keeps_its_offsets(small: Encoder) -> None:
    text = "My gout is back and I am tired of all the pain that it gives me. Tell me, is it hereditary?"
    short = answer(small, text)
    assert (short.text, short.method) == ("Is gout hereditary?", "edited")
    assert text[short.start : short.end] == "Tell me, is it hereditary?"
    assert (short.focus, text[short.focus_start : short.focus_end]) == ("gout", "gout")


def test_a_slot_outside_of_its_sentence_is_the_focus(small: Encoder) -> None:
    text = (
        "SUBJECT: gout MESSAGE: I live alone and far from any town that has a shop. Can you tell me the cure?"
    )
    short = answer(small, text, treatment=0.9)
    assert short.text == "What are the treatments for gout?"
    assert short.focus is not None
    assert text[short.focus_start : short.focus_end] == short.focus == "gout"


def test_features_are_as_many_as_their_names(small: Encoder) -> None:
    (found,) = extractor(small).find(["My son has lupus. Is there any cure?"])
    kinds = [0.9] * len(KINDS)
    question = intent_of(found, edited_clause(found), kinds)
    offered = edits(question)
    assert offered
    assert {len(kept_features(question)), *(len(e.features) for e in offered)} == {len(FEATURES)}
    assert (
        kind_features(found.message, found.kept.chosen.sentence).shape[0]
        == 2 * (len(KINDS) + small.dimension) + 1
    )


def test_weights_of_another_number_of_kinds_are_refused() -> None:
    with pytest.raises(ValueError, match="kinds of question"):
        KindClassifier(torch.zeros(3, 2))


OWN_WORDS = {
    word
    for phrase in (
        *(o.question for o in OPENINGS),
        *(o.further for o in OPENINGS),
        *(noun for noun, _, _ in LISTED),
        "are including and",
    )
    for word in re.findall(r"\w+", phrase.lower())
}
PARTS = st.lists(
    st.sampled_from(
        [
            "gout",
            "lupus",
            "Zoloft",
            "treatment for",
            "information on",
            "what causes",
            "cure",
            "it",
            "is",
            "my son has",
            "and",
            "?",
            ".",
            "please",
            "not",
            "3",
            "SUBJECT:",
            "MESSAGE:",
            "symptoms",
        ]
    ),
    min_size=1,
    max_size=30,
).map(" ".join)


@settings(deadline=None, max_examples=80)
@given(st.one_of(PARTS, MESSAGES))
def test_every_word_is_of_the_text_or_of_the_closed_set(small: Encoder, text: str) -> None:
    short = answer(small, text, treatment=0.9, information=0.7, cause=0.6)
    words = set(re.findall(r"\w+", text.lower()))
    assert set(re.findall(r"\w+", short.text.lower())) <= words | OWN_WORDS | {
        "was",
        "does",
        "has",
        "were",
        "do",
    }
    assert short.start is not None and short.end is not None and short.start <= short.end <= len(text)
    if short.focus is not None:
        assert text[short.focus_start : short.focus_end] == short.focus


def test_a_name_that_only_its_probability_shows_replaces_no_pronoun(mini: Encoder) -> None:
    """It may be anything: "Will my ear go away?" """
    (found,) = extractor(mini).find(["I have gout. Does it go away?"])
    known = edited_clause(found).text
    assert known == "Does gout go away?"
    name = found.kept.names[0]
    guessed = replace(name, sources={focus_features.KEY})
    kept = found.kept._replace(names=[guessed])
    assert edited_clause(found._replace(kept=kept)).text == "Gout: does it go away?"


@pytest.mark.parametrize(
    ("text", "kinds", "expected"),
    [
        # "Hereditary" is a part of the name, and asks nothing.
        (
            "Please send me information on hereditary angioedema.",
            {"information": 0.9, "inheritance": 0.8},
            "Where can I find information on hereditary angioedema?",
        ),
        ("Is hereditary angioedema inherited?", {"inheritance": 0.9}, "Is hereditary angioedema inherited?"),
        (
            "Please send me information on causes and treatment of gout.",
            {"information": 0.9},
            "Where can I find information on gout, including causes and treatments?",
        ),
    ],
)
def test_a_word_of_the_name_asks_no_kind_of_its_own(
    small: Encoder, text: str, kinds: dict[str, float], expected: str
) -> None:
    assert answer(small, text, **kinds).text == expected


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
