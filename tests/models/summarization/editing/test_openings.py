"""The closed set of openings."""

from __future__ import annotations

import pytest

from models.summarization.editing.openings import (
    CUES,
    INFORMATION,
    KINDS,
    OPENINGS,
    SLOT,
    Plan,
    all_asked,
    listed,
)


def test_every_opening_has_one_slot_and_no_name_of_its_own() -> None:
    assert len(set(KINDS)) == len(OPENINGS)
    for opening in OPENINGS:
        assert opening.question.count(SLOT) == 1
        assert opening.question.endswith("?")
        assert SLOT not in opening.further


@pytest.mark.parametrize(
    ("clause", "kind"),
    [
        ("is there a cure for it", "treatment"),
        ("can it be passed on to my child", "inheritance"),
        ("how is lupus diagnosed", "diagnosis"),
        ("does it contain gluten", "gluten"),
        ("send me some literature", "information"),
    ],
)
def test_words_that_ask_show_the_kind(clause: str, kind: str) -> None:
    assert CUES[KINDS.index(kind)].search(clause)


@pytest.mark.parametrize(
    ("clause", "kind"),
    [
        ("does it pass", "inheritance"),
        ("I was diagnosed in May", "diagnosis"),
        ("is there a genetic test", "inheritance"),
    ],
)
def test_the_same_words_with_another_meaning_do_not(clause: str, kind: str) -> None:
    assert not CUES[KINDS.index(kind)].search(clause)


def test_one_kind_two_kinds_and_a_list_are_worded() -> None:
    treatment, cause, inheritance = (KINDS.index(k) for k in ("treatment", "cause", "inheritance"))
    assert Plan((treatment,), ()).worded("gout") == "What are the treatments for gout?"
    assert (
        Plan((cause, treatment), ()).worded("gout") == "What causes gout, and what are the treatments for it?"
    )
    assert Plan((inheritance,), ()).worded("kidney stones") == "Are kidney stones inherited?"
    nouns = ("causes", "symptoms", "treatments")
    expected = "Where can I find information on gout, including causes, symptoms, and treatments?"
    assert Plan((INFORMATION,), nouns).worded("gout") == expected
    assert Plan((INFORMATION,), nouns[:2]).worded("gout").endswith("including causes and symptoms?")


def test_nouns_are_listed_in_the_order_of_the_clause() -> None:
    clause = "tell me about treatments, symptoms and what it costs: the cost"
    assert listed(clause) == ("treatments", "symptoms", "cost")
    assert listed("what should I do") == ()


def test_a_noun_without_its_kind_is_not_asked() -> None:
    treatment, cause = (KINDS.index(k) for k in ("treatment", "cause"))
    assert all_asked(("treatments",), (treatment,))
    assert not all_asked(("treatments", "causes"), (treatment,))
    assert all_asked(("treatments", "causes"), (treatment, cause))
    assert not all_asked(("cost",), (treatment, cause))
    assert all_asked((), (treatment,))


def test_long_term_use_of_a_medicine_asks_for_no_prognosis() -> None:
    assert listed("side effects of long term use of omeprazole") == ("side effects",)
    assert listed("long-term treatment with steroids") == ("treatments",)
    assert listed("the symptoms and the long term outlook") == ("symptoms", "prognosis")
    assert listed("what happens long term") == ("prognosis",)
