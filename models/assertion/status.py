"""The assertion of a mention: by the status that a model gave it, else by the rules."""

from __future__ import annotations

from models.assertion.rules import assertion
from models.types import HYPOTHETICAL, NEGATED, OTHER, Assertion, Mention


def asserted(text: str, mention: Mention, *, clinical: bool = False) -> Assertion:
    """What `text` states about an effect; `clinical` as in `assertion`."""
    if mention.status is None:
        return assertion(text, mention.start, mention.end, clinical=clinical)
    return Assertion(mention.status == NEGATED, mention.status == HYPOTHETICAL, mention.status == OTHER)
