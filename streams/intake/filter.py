"""Filters out posts in a language that is not read, and posts without the name of a drug.

The names are searched by the automaton of Aho and Corasick (1975), all at once.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Literal

from ahocorasick_rs import AhoCorasick

from models.drugs import BUNDLED
from models.language import unsupported_language
from models.spelling import exchanged, left_out
from models.tables import read_tsv
from models.vocabulary import words_by_frequency
from models.word_parts import beside_words, joined_words, parts_of

#: Letters of a name; slips in shorter ones are too often other words.
SHORTEST = 8
#: Sounds that are written in either way.
_ALIKE = (
    ("i", "y"), ("e", "i"), ("a", "e"), ("a", "o"), ("e", "o"), ("c", "k"), ("s", "z"), ("f", "ph"),
)  # fmt: skip
_SWAPS = _ALIKE + tuple((b, a) for a, b in _ALIKE)


def misspellings(names: Iterable[str]) -> set[str]:
    """The names with one letter left out, doubled, exchanged with the next one, or written as it sounds; the
    first letter stays. Without the names themselves and without words of the base model's vocabulary.
    """
    known = {name.lower() for name in names}
    made = {slip for name in known if len(name) >= SHORTEST and name.isalpha() for slip in _slips(name)}
    return made - known - set(words_by_frequency())


def _slips(name: str) -> Iterable[str]:
    yield from left_out(name)
    yield from exchanged(name)
    for i in range(1, len(name)):
        before, rest = name[:i], name[i:]
        yield before + rest[0] + rest
        yield from (
            before + written + rest[len(sound) :] for sound, written in _SWAPS if rest.startswith(sound)
        )


Verdict = Literal["passed", "no_term", "language"]
#: Terms of a file; more are a mistake.
MAX_TERMS = 100_000
#: Codes that name no language: those of ISO 639-2, also for private use, which X gives to posts of few words.
_UNKNOWN = re.compile("und|mul|mis|zxx|q[a-t][a-z]")


class Terms:
    """Terms that are found as whole words, without case; a plural or possessive `s` may follow. They are also
    found in words that are written together ("Lexapro10mg", "#lexaproproblems").
    """

    def __init__(self, terms: Iterable[str]) -> None:
        """Raises ValueError where there is no term."""
        patterns = sorted({" ".join(term.lower().split()) for term in terms} - {""})
        if not patterns:
            raise ValueError("no term to filter by")
        self._automaton = AhoCorasick(patterns)

    def occur_in(self, text: str) -> bool:
        """Whether any term is in the text."""
        return self._occur_in(text) or any(self._occur_in(words) for words in _parted(text))

    def _occur_in(self, text: str) -> bool:
        plain = " ".join(text.lower().split())
        matches = self._automaton.find_matches_as_indexes(plain, overlapping=True)
        return any(_is_word(plain, start, end) for _, start, end in matches)


def _is_word(text: str, start: int, end: int) -> bool:
    if start > 0 and _joins(text[start - 1]) and _joins(text[start]):
        return False
    rest = text[end : end + 2]
    if not rest or not _joins(text[end - 1]) or not _joins(rest[0]):
        return True
    return rest[0] == "s" and not (len(rest) > 1 and _joins(rest[1]))


def _parted(text: str) -> Iterator[str]:
    """Words that are written together, parted by blanks; and what may be a name in hashtags."""
    for word, is_tag in joined_words(text):
        parts = [text[part.start : part.end] for part in parts_of(text, word)]
        if len(parts) > 1:
            yield " ".join(parts)
        if is_tag:
            yield from (part[span.start : span.end] for part in parts for span in beside_words(part))


def _joins(character: str) -> bool:
    return character.isalnum() or character == "_"


def read_terms(path: Path) -> list[str]:
    """The terms of a file, one a line but for comments (#). Raises ValueError with its name."""
    try:
        # A file of Windows may begin with a byte order mark.
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"the terms {path} cannot be read: {type(error).__name__}") from None
    terms = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if len(terms) > MAX_TERMS:
        raise ValueError(f"{path} has more than {MAX_TERMS} terms")
    return terms


def drug_names() -> list[str]:
    """All names of the drug lexicon: generic, brand, synonyms and common misspellings."""
    return [row[0] for row in read_tsv(BUNDLED, ("name", "generic"))]


def drug_terms() -> list[str]:
    """All names, and their misspellings with one error."""
    names = drug_names()
    return [*names, *misspellings(names)]


class Filter:
    """Passes a text in one of `languages` that has one of the terms; with `terms` None every text."""

    def __init__(self, terms: Terms | None, languages: Collection[str]) -> None:
        self._terms = terms
        self._languages = frozenset(languages)

    def judge(self, text: str, stated: str | None = None, drugs: Collection[str] = ()) -> Verdict:
        """`stated`: the language that the source states, if it does; its region is ignored. `drugs`: those
        that it states, which a text need not name again.
        """
        if self._terms is None:
            return "passed"
        language = (stated or "").lower().replace("_", "-").split("-")[0]
        if _UNKNOWN.fullmatch(language):
            language = ""
        if language and language not in self._languages:
            return "language"
        # Few posts have a drug's name, and to identify a language takes longer.
        if not any(self._terms.occur_in(words) for words in (text, *drugs)):
            return "no_term"
        if not language and unsupported_language(text, self._languages):
            return "language"
        return "passed"
