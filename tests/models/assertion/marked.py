"""Texts with an effect in square brackets, and what they state about it."""

from __future__ import annotations

from models.assertion.triggers import assertion
from models.types import Assertion

NEGATED = Assertion(negated=True)
HYPOTHETICAL = Assertion(hypothetical=True)
OTHER = Assertion(other_experiencer=True)
ASSERTED = Assertion()


def assertion_of(marked: str, *, clinical: bool = False) -> Assertion:
    """The assertion of the effect in square brackets."""
    before, rest = marked.split("[")
    effect, after = rest.split("]")
    return assertion(before + effect + after, len(before), len(before) + len(effect), clinical=clinical)
