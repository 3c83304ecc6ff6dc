"""Misspelled names of drugs ("cybalta", "trazdone"): a word that is one edit from names of one drug."""

from __future__ import annotations

from functools import lru_cache
from itertools import chain

from models.drugs import bundled_lexicon
from models.drugs.nicknames import generic_of_nickname
from models.spelling import added, exchanged, left_out, replaced
from models.vocabulary import common_words

#: Letters of the shortest word and of the shortest name; shorter words are one edit from too many names.
LEAST_LETTERS = 6


@lru_cache(maxsize=4096)
def generic_of_misspelling(name: str) -> str | None:
    """The nonproprietary name of the only drug of the bundled lexicon that has a name one edit from `name`,
    in any case, with the same first letter; else None. An edit is a letter deleted, inserted, replaced, or
    exchanged with the next one (Damerau 1964). For words that a tagger took for a drug: others may be one
    edit from a drug too ("ambients"). A common word ("planet") is none, and the name of another drug is no
    slip.
    """
    word = name.strip().lower()
    if len(word) < LEAST_LETTERS or not (word.isascii() and word.isalpha()) or word in common_words():
        return None
    if known := generic_of_nickname(word, word):
        return known
    lexicon = bundled_lexicon()
    edits = chain(exchanged(word), left_out(word), added(word), replaced(word))
    generics = {lexicon.of_word(edit) for edit in edits if len(edit) >= LEAST_LETTERS} - {None}
    return generics.pop() if len(generics) == 1 else None
