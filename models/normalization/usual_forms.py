"""What short forms mean in a post, by the tables of the acronym stage, which reads clinical sentences."""

from __future__ import annotations

import re

from models.once import once
from models.tables import DATA, read_tsv
from models.terminology import term_named
from models.types import Expansion

#: How often other meanings may be meant where a meaning is the only one that is expected.
_UNEXPECTED = frozenset(("occasional", "rare"))
#: The end of a mention, but for the s of a plural. In small letters most are words.
_SHORT_FORM = re.compile(r"(?<![\w/&+-])(?:[A-Z]{2,6}|[A-Z]/[A-Z])(?=s?$)")
#: Characters on each side of a mention, and the share of capitals among the letters there and in the mention
#: from which on it may be a word that is shouted.
_AROUND, _SHOUTED = 60, 0.6


def usual_expansions(text: str, start: int, end: int) -> tuple[Expansion, ...]:
    """The short form that a mention of a post ends with, where its one expected meaning is a name of the
    terminology: "worse IBS", "OH"; no "ED", which is expected to be a place.
    """
    found = _SHORT_FORM.search(text[start:end])
    long_form = _expected(found.group()) if found else None
    if found is None or long_form is None:
        return ()
    letters = [c for c in text[max(0, start - _AROUND) : end + _AROUND] if c.isalpha()]
    if sum(map(str.isupper, letters)) > _SHOUTED * len(letters) and len(letters) > end - start:
        return ()
    first, last = found.span()
    return (Expansion(start + first, start + last, found.group(), long_form, 1.0, "dictionary"),)


@once
def long_forms() -> dict[str, dict[str, str]]:
    """Of each short form of the tables its long forms, each with how often it is meant, or empty."""
    columns = ("short_form", "long_form", "frequency")
    forms: dict[str, dict[str, str]] = {}
    for short, form, *_ in read_tsv(DATA / "acronyms.tsv", columns[:2]):
        forms.setdefault(short, {})[form] = ""
    for short, form, word in read_tsv(DATA / "acronym_frequencies.tsv", columns):
        forms.setdefault(short, {})[form] = word
    return forms


@once
def _expected(short_form: str) -> str | None:
    forms = long_forms().get(short_form, {})
    expected = [form for form, word in forms.items() if word not in _UNEXPECTED]
    return expected[0] if len(expected) == 1 and term_named(expected[0]) else None
