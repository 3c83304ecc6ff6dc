"""Short texts beside a stated drug: the name of a term is an effect as it stands, and nothing else is."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from models.normalization.verbatims import is_verbatim, with_verbatims
from models.types import ADE, DRUG, INDICATION, WITHDRAWAL, Mention


def tagged(text: str, *found: tuple[str, str, str | None]) -> list[Mention]:
    """Mentions of a text: surface, label and status."""
    return [
        Mention(text.index(surface), text.index(surface) + len(surface), surface, label, 0.9, status=status)
        for surface, label, status in found
    ]


@pytest.mark.parametrize(
    ("text", "effects"),
    [
        ("high blood sugar", ["high blood sugar"]),
        ("Blood sugar high.", ["Blood sugar high"]),
        ("DEATH", ["DEATH"]),
        ("the patient died.", ["died"]),
        ("drug ineffective", ["drug ineffective"]),
        ("suicidal", ["suicidal"]),
        ("felt very dizzy today", ["dizzy"]),
        ("severe depression", ["severe depression"]),
        ("QT prolonged", ["QT prolonged"]),
        ("nausea, vomiting, and rash", ["nausea", "vomiting", "rash"]),
        ("Headache; hives", ["Headache", "hives"]),
        ("rash/hives", ["rash", "hives"]),
        ("no energy", ["no energy"]),
        ("off label use", ["off label use"]),
        ("MI", ["MI"]),
        ("no nausea", []),
        ("denies chest pain", []),
        ("no side effects", []),
        ("None.", []),
        ("works great, love it", []),
        ("for anxiety", []),
        ("helped my anxiety", []),
        ("reduced pain and swelling", []),
        ("cured the strep throat", []),
        ("my mother died", []),
        ("took for high blood sugar", []),
        ("possible rash", []),
        ("dizzy when stopping", []),
        ("mi", []),
        ("na", []),
        (" - ", []),
        ("", []),
    ],
)
def test_a_text_that_is_names_of_terms_has_an_effect_for_each(text: str, effects: Sequence[str]) -> None:
    found = with_verbatims(text, [])
    assert [(m.text, m.label, m.status) for m in found] == [(surface, ADE, None) for surface in effects]
    assert all(text[m.start : m.end] == m.text for m in found)


def test_what_a_tagger_took_for_something_else_is_an_effect_and_its_effects_stay() -> None:
    for label in (INDICATION, WITHDRAWAL, DRUG):
        (made,) = with_verbatims("dizzy", tagged("dizzy", ("dizzy", label, "own")))
        assert (made.label, made.status) == (ADE, None)
    named = tagged("withdrawal syndrome", ("withdrawal syndrome", WITHDRAWAL, "own"))
    assert with_verbatims("withdrawal syndrome", named) == named
    own = tagged("bad rash, fever", ("bad rash", ADE, "hypothetical"))
    assert [(m.text, m.status) for m in with_verbatims("bad rash, fever", own)] == [
        ("bad rash", "hypothetical"), ("fever", None),
    ]  # fmt: skip
    both = tagged("nausea and vomiting", ("nausea and vomiting", ADE, "own"))
    assert [m.text for m in with_verbatims("nausea and vomiting", both)] == ["nausea", "vomiting"]
    parts = tagged("blood sugar high", ("blood sugar", DRUG, None), ("high", ADE, "own"))
    assert [m.text for m in with_verbatims("blood sugar high", parts)] == ["blood sugar high"]
    others = tagged("mild pain in Paxil", ("pain", INDICATION, None), ("Paxil", DRUG, None))
    assert with_verbatims("mild pain in Paxil", others) == others


def test_a_verbatim_has_at_most_five_words_and_asks_nothing() -> None:
    assert is_verbatim("one two three four five") and is_verbatim("")
    assert not is_verbatim("one two three four five six")
    assert not is_verbatim("can it cause rash?")
