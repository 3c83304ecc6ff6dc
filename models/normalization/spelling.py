"""Misspelled words of a mention, corrected by the words of the terminology and of the written phrases.

The pieces of a misspelled word ("nausia") say little of what is meant, so its vector is far from that of
every term. A word is corrected if it is unknown, that is neither a word of those texts nor one piece of the
encoder, also with another ending, and if one edit turns it into a word of those texts (Norvig 2007): a letter
deleted, inserted, exchanged with its neighbour, or replaced by one of similar sound.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import chain

from models.spelling import added, exchanged, left_out, replaced

#: Minimum length of a word that is corrected, and minimum count in those texts of the word that replaces it.
LEAST_LETTERS, LEAST_COUNT = 5, 2
#: A word that only phrases have is misspelled if a word of the terminology is this many times as common.
TIMES = 30
#: Corrections that are cached.
_REMEMBERED = 4096
#: Letters that are confused with each other.
ALIKE = {
    **{vowel: "aeiouy".replace(vowel, "") for vowel in "aeiouy"},
    **{"k": "cq", "q": "gkc", "g": "q", "c": "ksz", "s": "cz", "z": "sc"},
}
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")
#: Endings of words, and those before which an e is dropped or a letter doubled ("rac-ing", "sob-b-ing").
_ENDINGS = ("s", "es", "d", "ed", "ing", "ly", "er", "ers", "y", "ness", "ful", "less", "able")
_CHANGING = frozenset({"es", "ed", "ing", "er", "ers", "y", "able"})


class Spelling:
    """Corrects words; several threads may use it at once."""

    def __init__(self, names: Iterable[str], phrases: Iterable[str], is_piece: Callable[[str], bool]) -> None:
        """`names`: of the terminology, spelled correctly; `phrases`: written phrases, which may contain
        deliberate misspellings; `is_piece`: whether a word in lower case is one piece of the encoder.
        """
        own = _words(names)
        self._names = frozenset(own)
        self._counts = own + _words(phrases)
        self._is_piece = is_piece
        self._corrected = lru_cache(_REMEMBERED)(self._correction)

    def corrected(self, text: str) -> str:
        """The text with its misspelled words corrected, in lower case; the others stay as they are."""
        return _WORD.sub(lambda found: self._corrected(found[0].lower()) or found[0], text)

    def _correction(self, word: str) -> str | None:
        """The most common word that is one edit from this one; None where it is not misspelled."""
        if len(word) < LEAST_LETTERS or not word.isascii() or not word.isalpha() or self._is_known(word):
            return None
        written = max(self._counts.get(form, 0) for form in _forms(word))
        least = max(LEAST_COUNT, TIMES * written)
        moved = chain(exchanged(word, 0), left_out(word), added(word))
        for edits in (moved, replaced(word, ALIKE, 0)):
            found = {
                w: count
                for w in edits
                if (count := self._counts.get(w, 0)) >= least and (not written or w in self._names)
            }
            if found:
                return max(sorted(found), key=lambda w: found[w])
        return None

    def _is_known(self, word: str) -> bool:
        return any(form in self._names or self._is_piece(form) for form in _forms(word))


def _words(texts: Iterable[str]) -> Counter[str]:
    """How often the texts have each word, in lower case."""
    return Counter(_WORD.findall("\n".join(texts).lower()))


def _forms(word: str) -> Iterator[str]:
    """A word and its possible stems without an ending."""
    yield word
    for ending in _ENDINGS:
        stem = word.removesuffix(ending)
        if stem == word or len(stem) < LEAST_LETTERS - 2 or (ending == "d" and stem[-1] != "e"):
            continue
        yield stem
        if ending not in _CHANGING:
            continue
        yield f"{stem}e"
        if stem[-1] == stem[-2]:
            yield stem[:-1]
