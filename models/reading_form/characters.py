"""Characters that are written in another way than they are read: by NFKC, invisible ones, and letters of
other scripts that look like Latin ones, in words and texts that are Latin otherwise.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from models.once import once
from models.reading_form.edits import Edit
from models.tables import DATA, read_tsv

_OTHERS = re.compile(r"[^\x00-\x7f]+")
_MARK, _INVISIBLE, _SELECTOR = "mark", "invisible", "selector"
#: Combining marks of a letter that are put in order, which takes quadratic time.
_MOST_MARKS = 30
#: Marks through a letter: who strikes a word out does not mean it, so it is not read.
_STRIKES = frozenset("\u0334\u0335\u0336\u0337\u0338\u20d2\u20d3\u20e5\u20e6\u20ea\u20eb")
_KEYCAP = "\u20e3"
#: Not of the category of their kind: joiner, Hangul fillers, and a blank of Braille.
_BY_HAND = {
    **dict.fromkeys("\u034f\u115f\u1160\u3164\uffa0\u17b4\u17b5", _INVISIBLE),
    **dict.fromkeys("\u2010\u2011\u2212", "=-"),
    "\u02bc": "='",
    "\u2800": "= ",
}
#: Letters whose decomposition says nothing of what they look like.
_STYLED = re.compile(
    r"LATIN LETTER SMALL CAPITAL ([A-Z])|NEGATIVE (?:CIRCLED|SQUARED) LATIN CAPITAL LETTER ([A-Z])"
)
#: Kinds of decompositions that keep the meaning of a number or a mark: not a power, a fraction or "1.".
_DIGITS, _MARKS = {"<font>", "<wide>"}, {"<wide>", "<narrow>", "<small>"}
_FIRST_NOT_IN_LATIN_1 = "\u0100"
_WORD = re.compile(r"\w+")
#: Greek letters that are used as symbols, as in "IFN\u03b3", "NF\u03baB" and "\u03b1-blocker".
_SYMBOLS = frozenset("\u03b1\u03b3\u03b9\u03ba\u03c1\u03c3\u03c5")
#: A text is Latin with so many Latin letters for each that looks like none.
_FOR_EACH = 4


class _Kinds(dict[str, str]):
    """What a character is: a mark of the one before, an invisible one, or = with what is read for it; empty
    where it is read as it is.
    """

    def __missing__(self, character: str) -> str:
        return self.setdefault(character, _kind(character))


_kinds = _Kinds()


def _kind(c: str) -> str:
    if c in _BY_HAND:
        return _BY_HAND[c]
    category, code = unicodedata.category(c), ord(c)
    if 0xFE00 <= code <= 0xFE0F or 0xE0020 <= code <= 0xE01EF:  # noqa: PLR2004  variations of the one before
        return _SELECTOR
    if category == "Cf" or 0x180B <= code <= 0x180F:  # noqa: PLR2004  Mongolian
        return _INVISIBLE
    # Vowels and finals of Hangul are composed with what is before them, like marks.
    if category[0] == "M" or 0x1160 <= code <= 0x11FF:  # noqa: PLR2004
        return _MARK
    read = " " if category == "Zs" else _read(c, category)
    return "" if read == c else f"={read}"


def _read(c: str, category: str) -> str:
    canonical, read = unicodedata.normalize("NFC", c), unicodedata.normalize("NFKC", c)
    if canonical != c or c < _FIRST_NOT_IN_LATIN_1:
        return canonical
    if styled := _STYLED.fullmatch(unicodedata.name(c, "")):
        letter = styled[1] or styled[2]
        return letter.lower() if category[0] == "L" and category != "Lu" else letter
    tag = unicodedata.decomposition(c).split(" ")[0]
    is_letter = read.isalpha() and all(map(is_latin, read)) and (category[0] in "LN" or tag != "<compat>")
    is_digit = read.isdecimal() and tag in _DIGITS
    is_mark = read.isascii() and not read.isalnum() and tag in _MARKS
    # A sign for a trade mark is no part of the name before it.
    is_sign = category == "So" and tag == "<super>"
    return read if (is_letter or is_digit or is_mark) and not is_sign else c


def character_edits(text: str) -> Iterator[Edit]:
    """What is read for the characters of a text that are not in ASCII."""
    for run in _OTHERS.finditer(text):
        if any(map(_kinds.__getitem__, run.group())):
            yield from _in_run(text, *run.span())


def _in_run(text: str, start: int, end: int) -> Iterator[Edit]:
    """`start`, `end`: of characters not in ASCII."""
    i = start
    while i < end:
        kind = _kinds[text[i]]
        after = i + 1
        while after < end and kind and _kinds[text[after]] == kind and kind[0] != "=":
            after += 1
        first = i - 1 if kind == _MARK and i == start and i > 0 else i
        if kind in (_INVISIBLE, _SELECTOR):
            new = text[i:after] if _belongs(text, i, after, kind) else ""
        else:
            if kind != _MARK:
                while after < end and _kinds[text[after]] == _MARK:
                    after += 1
            new = _composed(text[first:after])
        if new != text[first:after]:
            yield Edit(first, after, new)
        i = after


def _belongs(text: str, start: int, end: int, kind: str) -> bool:
    """Whether invisible characters are a part of an emoji, or of a word in a script that needs them."""
    before = text[start - 1] if start else " "
    behind = text[end] if end < len(text) else " "
    if kind == _SELECTOR:
        return behind == _KEYCAP or not _is_plain(before)
    return not (_is_plain(before) or _is_plain(behind))


def _is_plain(c: str) -> bool:
    return c.isascii() or c.isspace() or is_latin(c)


def _composed(letter: str) -> str:
    """A character with its marks as it is read: a Latin letter without those that no letter has, and nothing
    for one that is struck out.
    """
    kind = _kinds[letter[0]] if not letter[0].isascii() else ""
    base, marks = kind[1:] if kind.startswith("=") else letter[0], letter[1:]
    if not marks:
        return base
    if not is_latin(base[-1]):
        return unicodedata.normalize("NFC", base + marks[:_MOST_MARKS]) + marks[_MOST_MARKS:]
    if not _STRIKES.isdisjoint(marks):
        return ""
    return base[:-1] + unicodedata.normalize("NFC", base[-1] + marks[:_MOST_MARKS])[0]


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
