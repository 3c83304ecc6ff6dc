"""Drugs in words that are written together with a dose, a form or other words: "Lexapro10mg", "20mgLexapro",
"#OzempicSideEffects", "#lexaproproblems".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from models.drugs import bundled_lexicon
from models.drugs.informal_names import generic_of_misspelling
from models.text import PlacedWords, words
from models.types import Span
from models.vocabulary import common_words
from models.word_parts import beside_words, joined_words, parts_of

#: What stands beside a misspelled name: units, forms and other short parts.
_SMALL = re.compile(r"[^\W\d_]{1,4}")
#: Letters that may be slips of a name, and are no word beside it.
_FEW = 3
#: Says of a word that a drug is in it.
_DOSE = re.compile(r"\d(?:mc?g|ml|iu)(?!\w)|\d(?:mc?g|ml|iu)(?=[^\W\d_]{4})", re.IGNORECASE)


def drugs_joined(text: str) -> Iterator[tuple[Span, str]]:
    """The drugs in such words of a text, with their nonproprietary names, in order; in a hashtag also beside
    words without a border, and beside a dose also with one wrong letter. None in a handle, and none in a word
    that the lexicon has as a whole.
    """
    for word, is_tag in joined_words(text):
        yield from _inside(text, word, is_tag=is_tag)


@lru_cache(maxsize=4096)
def generic_as_written(name: str) -> str | None:
    """The nonproprietary name of what a tagger took, or a source states, as a drug: of a name with one wrong
    letter, or of the only drug in it, that may be joined with other words; None where there is none, or of
    several that are no combination.
    """
    if found := generic_of_misspelling(name):
        return found
    inside = {generic for _, generic in bundled_lexicon().find(name)}
    inside |= {generic for word in words(name) for _, generic in _inside(name, word, is_tag=True)}
    if inside:
        return inside.pop() if len(inside) == 1 else None
    return _misspelled([name[part.start : part.end] for word in words(name) for part in parts_of(name, word)])


def _inside(text: str, word: Span, *, is_tag: bool) -> list[tuple[Span, str]]:
    lexicon = bundled_lexicon()
    if lexicon.canonical(text[word.start : word.end]) is not None:
        return []
    parts = parts_of(text, word)
    found = lexicon.among(PlacedWords.of(text, parts)) if len(parts) > 1 else []
    if not is_tag and not any(map(str.isdigit, text[word.start : word.end])):
        found = [one for one in found if text[one[0].start : one[0].end].lower() not in common_words()]
    if found:
        return found
    found = [one for part in parts if (one := _beside(text, part))] if is_tag else []
    if not found and _DOSE.search(text, word.start, word.end):
        slips = ((part, generic_of_misspelling(text[part.start : part.end])) for part in parts)
        found = [(part, generic) for part, generic in slips if generic]
    return found


def _beside(text: str, part: Span) -> tuple[Span, str] | None:
    """The longest name of the lexicon beside words in a part."""
    for span in beside_words(text[part.start : part.end]):
        start, end = part.start + span.start, part.start + span.end
        if generic := bundled_lexicon().canonical(text[start:end]):
            return Span(start, end), generic
    return None


def _misspelled(parts: Sequence[str]) -> str | None:
    """The drug that the only part is which is neither a number nor a short or common word, or is there beside
    words of some letters.
    """
    names = [p for p in parts if not (p.isdigit() or _SMALL.fullmatch(p) or p.lower() in common_words())]
    if len(names) != 1:
        return None
    (name,) = names
    within = [
        name,
        *(name[s.start : s.end] for s in beside_words(name) if len(name) > s.end - s.start + _FEW),
    ]
    return next(filter(None, map(generic_of_misspelling, within)), None)
