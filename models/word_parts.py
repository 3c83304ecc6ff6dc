"""The parts of words that are written together: "Lexapro10mg", "#OzempicSideEffects", "#lexaprosucks"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from models.types import Span
from models.vocabulary import common_words

#: Where letters meet digits, a small letter a capital one, or a low line both sides; and where a hashtag
#: begins. The first part is quick to pass over most places that are none.
_BORDER = re.compile(
    r"(?=[\d_#A-Z]|(?<=\d)[^\W\d_])"
    r"(?:(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])|(?<=[a-z])(?=[A-Z])|(?<=[^\W_])_(?=[^\W_])|#(?=[^\W\d_]))"
)
#: A number, the unit between it and a name, and letters up to the next capital one.
_PART = re.compile(
    r"\d+|(?<=\d)(?i:mc?g|ml|iu)(?=[^\W\d_]{4})|[A-Z]?[^\W\d_A-Z]+|[A-Z]+(?![^\W\d_A-Z])|[A-Z]"
)
_WORD = re.compile(r"\w+")
#: Letters of the shortest name beside words without a border, of the shortest word there, and of the longest
#: such part.
_NAME, _LEAST, _LONGEST = 5, 4, 40
#: Shorter words that may be there.
_SHORT = frozenset(("and", "bad", "day", "for", "is", "me", "mom", "my", "no", "not", "of", "on", "to"))


def joined_words(text: str) -> Iterator[tuple[Span, bool]]:
    """The words with a border inside, and hashtags, in order, and whether it is a hashtag; no handles."""
    end = 0
    for border in _BORDER.finditer(text):
        at = border.start()
        if at < end:
            continue
        is_tag = text[at] == "#"
        start = at + is_tag
        while start > end and _joins(text[start - 1]):
            start -= 1
        word = _WORD.match(text, start)
        end = word.end() if word else start
        before = text[start - 1 : start]
        if word and before != "@":
            yield Span(start, end), before == "#"


def _joins(character: str) -> bool:
    return character.isalnum() or character == "_"


def parts_of(text: str, word: Span) -> list[Span]:
    """The parts of a word, from border to border."""
    return [Span(*part.span()) for part in _PART.finditer(text, word.start, word.end)]


def beside_words(part: str) -> list[Span]:
    """Where a name may be in a part without a border: all else there are words; longest first. None where the
    part is a word itself.
    """
    plain, n = part.lower(), len(part)
    if not _NAME < n <= _LONGEST or len(plain) != n or plain in common_words():
        return []
    after, before = _ends_of_words(plain), _ends_of_words(plain, backwards=True)
    found = [Span(i, j) for i in after for j in before if _NAME <= j - i < n]
    return sorted(found, key=lambda span: span.start - span.end)


def _ends_of_words(letters: str, *, backwards: bool = False) -> list[int]:
    """The places up to which letters are words, one behind the other; from which on they are, `backwards`."""
    n = len(letters)
    reached = [n if backwards else 0]
    for place in range(n - 1, -1, -1) if backwards else range(1, n + 1):
        pairs = ((place, other) if backwards else (other, place) for other in reached)
        if any(_is_word(letters[start:end]) for start, end in pairs):
            reached.append(place)
    return reached


def _is_word(letters: str) -> bool:
    return letters in _SHORT or (len(letters) >= _LEAST and letters in common_words())
