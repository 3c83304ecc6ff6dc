"""Finds the term that a text names, or the name of one at its end, by the letters alone."""

from __future__ import annotations

from models.once import once
from models.terminology import Term, load


def term_at_end(text: str) -> Term | None:
    """The term of the longest name of the bundled terminology that the text ends with ("severe knee pain"),
    without regard to case; None where it ends with none.
    """
    ending = " ".join(text.lower().split())
    while ending and ending not in _by_name():
        _, _, ending = ending.partition(" ")
    return _by_name().get(ending)


def term_named(text: str) -> Term | None:
    """The term of the bundled terminology with this very name, without regard to case."""
    return _by_name().get(" ".join(text.lower().split()))


@once
def _by_name() -> dict[str, Term]:
    terms = load()
    return {t.llt.lower(): t for t in terms} | {t.pt.lower(): t for t in terms}
