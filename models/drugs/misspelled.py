"""Misspelled names of drugs ("cybalta", "trazdone"): a word that is one edit from names of one drug."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from string import ascii_lowercase

from models.drugs import bundled_lexicon

#: Letters of the shortest word and of the shortest name; shorter words are one edit from too many names.
LEAST_LETTERS = 6


@lru_cache(maxsize=4096)
def generic_of_misspelling(name: str) -> str | None:
    """The nonproprietary name of the only drug of the bundled lexicon that has a name one edit from `name`,
    in any case, with the same first letter; else None. An edit is a letter deleted, inserted, replaced, or
    exchanged with the next one (Damerau 1964). For words that a tagger took for a drug: others may be one
    edit from a drug too ("ambient").
    """
    word = name.strip().lower()
    if len(word) < LEAST_LETTERS or not (word.isascii() and word.isalpha()):
        return None
    lexicon = bundled_lexicon()
    found = {lexicon.canonical(edit) for edit in _edits(word) if len(edit) >= LEAST_LETTERS} - {None}
    return found.pop() if len(found) == 1 else None


def _edits(word: str) -> Iterator[str]:
    for i in range(1, len(word) + 1):
        before, after = word[:i], word[i:]
        yield from (before + letter + after for letter in ascii_lowercase)
        if after:
            yield before + after[1:]
            yield from (before + letter + after[1:] for letter in ascii_lowercase)
        if after[1:]:
            yield before + after[1] + after[0] + after[2:]
