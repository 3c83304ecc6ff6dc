"""Zero width spaces that stand between words, as sites put them where a line may end.

Within a word such a space is left out as other invisible characters are; which of both it is the words say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from models.drugs import bundled_lexicon
from models.reading_form.edits import Edit
from models.terminology import term_named
from models.vocabulary import common_words

_SPACE = "\u200b"
_JOINED = re.compile(rf"(?<![^\W\d_])[^\W\d_]++(?:{_SPACE}++[^\W\d_]++)++")
_SPACES = re.compile(f"{_SPACE}+")
#: Characters of the longest text between two other blanks that is looked at.
_LONGEST = 128
#: The only words of one letter.
_SHORTEST = frozenset("ai")


def separator_edits(text: str) -> Iterator[Edit]:
    """A blank for each zero width space between letters that are words, and are none without it."""
    for joined in _JOINED.finditer(text) if _SPACE in text else ():
        parts = _SPACES.split(joined.group()) if len(joined.group()) <= _LONGEST else []
        if parts and not _is_word("".join(parts)) and all(map(_is_word, parts)):
            for space in _SPACES.finditer(text, *joined.span()):
                yield Edit(*space.span(), " ")


def _is_word(letters: str) -> bool:
    plain = letters.lower()
    if len(plain) == 1:
        return plain in _SHORTEST
    return (
        plain in common_words()
        or bundled_lexicon().canonical(plain) is not None
        or term_named(plain) is not None
    )
