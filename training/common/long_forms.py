"""When two spellings are the same long form, and what CASI's senses are called in the dictionary."""

from __future__ import annotations

import re
from functools import cache

from models.tables import read_tsv
from training.common import DATA

#: The senses of CASI that the dictionary spells otherwise or lacks; NO_FORM for those that stand for nothing
#: else: words in capitals, stages, names of places.
SENSES = DATA / "casi_senses.tsv"
NO_FORM = "-"
_POSSESSIVE = re.compile(r"['\u2019]s\b")
#: Words up to this length keep a final s.
_SHORT = 3


def key(long_form: str) -> str:
    """Equal for spellings that differ in case, hyphens, spaces, plural and possessive."""
    words = re.findall(r"[^\W_]+", _POSSESSIVE.sub("", long_form.lower()))
    return "".join(word[:-1] if len(word) > _SHORT and re.search("[^s]s$", word) else word for word in words)


@cache
def casi_senses() -> dict[tuple[str, str], str]:
    """A short form and a sense of CASI to the dictionary's long form, which is the short form itself where
    it stands for nothing else. Senses that are missing here are called in the dictionary as in CASI, but for
    their spelling, or are no senses (the doubts and slips of its annotators).
    """
    rows = read_tsv(SENSES, ("short_form", "sense", "long_form"))
    return {(short, sense): short if form == NO_FORM else form for short, sense, form in rows}
