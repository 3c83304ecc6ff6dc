"""The editor as a whole: which openings a message allows, and what the record says."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from models.encoder.model import Encoder
from models.summarization.editing.editor import edited_clause
from models.summarization.editing.edits import FEATURES, edits, kept_features
from models.summarization.editing.intent import intent_of
from models.summarization.editing.kinds import KindClassifier, kind_features
from models.summarization.editing.openings import KINDS, LISTED, OPENINGS
from models.summarization.extraction import focus_features
from tests.models.summarization.editing.made import answer, editor, extractor
from tests.models.summarization.messages import MESSAGES


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
