"""Models of all five tasks that answer at once: each raises on a text with the poison word, as a model does
that a text breaks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from models.loading import Loaded, as_json
from models.types import (
    ADE,
    DRUG,
    Candidate,
    Case,
    Coding,
    Expansion,
    Mention,
    Query,
    Relation,
    ShortQuestion,
)

#: Texts with this word raise.
POISON = "unreadable"


class Stub:
    """Answers every input by itself."""

    task = "stub"

    def __init__(self, answer: Callable[[Any], Any], text: Callable[[Any], str] = str) -> None:
        self._answer = answer
        self._text = text

    def predict(self, batch: Sequence[Any], _stated: object = ()) -> list[Any]:
        if any(POISON in text for text in map(self._text, batch)):
            raise ValueError("a text that it cannot read")
        return [self._answer(one) for one in batch]


def _mentions(text: str) -> tuple[Mention, Mention]:
    """An effect and a drug, both in the first letter."""
    return Mention(0, 1, text[:1], ADE, 0.9), Mention(0, 1, text[:1], DRUG, 0.8)


def _expansions(text: str) -> list[Expansion]:
    return [Expansion(0, 1, text[:1], "a long form", 0.9, "dictionary")]


def _relations(case: Case) -> list[Relation]:
    """Between the mentions of `_mentions`."""
    return [Relation(1, 0, 0.7)] if case.mentions else []


def _coding(_: Query) -> Coding:
    return Coding((Candidate("Rash", "Rash", "Skin", 0.9),), nil=False)


def _question(text: str) -> ShortQuestion:
    return ShortQuestion(text, "extractive", 0.5, 0, len(text))


def _text_of(one: Query | Case) -> str:
    return one.text


#: Stage to its stub and the inputs of its canary check.
_STUBS: dict[str, tuple[Stub, Sequence[Any]]] = {
    "ner": (Stub(_mentions), ["canary"]),
    "acronym": (Stub(_expansions), ["canary"]),
    "relation": (Stub(_relations, _text_of), [Case("canary", _mentions("canary"))]),
    "normalization": (Stub(_coding, _text_of), [Query("canary", 0, 1, "c")]),
    "summarization": (Stub(_question), ["canary"]),
}


def stub(stage: str) -> Loaded:
    """The stub of a stage, loaded as a release that passes its canary check."""
    model, inputs = _STUBS[stage]
    return Loaded(stage, "0" * 12, "stub", model, (list(inputs), as_json(model.predict(inputs)), 0.0))
