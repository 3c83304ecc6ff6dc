"""Letters of other scripts that look like Latin ones, in words and texts that are Latin otherwise."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from models.once import once
from models.reading_form.edits import Edit
from models.tables import DATA, read_tsv

_WORD = re.compile(r"\w+")
#: Greek letters that are used as symbols, as in "IFN\u03b3", "NF\u03baB" and "\u03b1-blocker".
_SYMBOLS = frozenset("\u03b1\u03b3\u03b9\u03ba\u03c1\u03c3\u03c5")
#: A text is Latin with so many Latin letters for each that looks like none.
_FOR_EACH = 4


@once
def lookalikes() -> dict[str, str]:
    """The Latin letter that each of them looks like."""
    return {row[0]: row[1] for row in read_tsv(DATA / "confusables.tsv", ("letter", "latin"))}


class _Latin(dict[str, bool]):
    """Whether a character is a Latin letter that looks like no other one."""

    def __missing__(self, character: str) -> bool:
        is_latin = unicodedata.name(character, "").startswith("LATIN ") and character not in lookalikes()
        return self.setdefault(character, is_latin)


is_latin = _Latin().__getitem__


def lookalike_edits(text: str) -> Iterator[Edit]:
    """Each look-alike as the Latin letter, in words that mix it with Latin letters and, where the text is
    Latin otherwise, in any word. A word with a letter that looks like no Latin one stays.
    """
    if text.isascii() or lookalikes().keys().isdisjoint(text):
        return
    letters = [c for c in text if c.isalpha()]
    n_foreign = sum(not (is_latin(c) or c in lookalikes()) for c in letters)
    text_is_latin = _FOR_EACH * n_foreign <= sum(map(is_latin, letters))
    for word in _WORD.finditer(text):
        if not word.group().isascii() and _is_imitated(word.group(), text_is_latin):
            for place, character in enumerate(word.group(), word.start()):
                if character in lookalikes():
                    yield Edit(place, place + 1, lookalikes()[character])


def _is_imitated(word: str, text_is_latin: bool) -> bool:
    letters = [c for c in word if c.isalpha()]
    others = [c for c in letters if not is_latin(c)]
    if not others or any(c not in lookalikes() for c in others):
        return False
    if not _SYMBOLS.isdisjoint(others) and not all(map(_is_within, _places(word))):
        return False
    if len(others) < len(letters):
        return text_is_latin or (is_latin(letters[0]) and is_latin(letters[-1]))
    is_symbol = len(letters) == 1 and unicodedata.name(word[0], "").startswith("GREEK")
    return text_is_latin and not is_symbol


def _places(word: str) -> Iterator[str]:
    """Each symbol with its neighbours."""
    return (f" {word} "[i : i + 3] for i, c in enumerate(word) if c in _SYMBOLS)


def _is_within(place: str) -> bool:
    return all(c.islower() for c in (place[0], place[2]))
