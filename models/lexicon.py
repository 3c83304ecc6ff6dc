"""Finds names in text: the longest name of a lexicon at each word, from left to right."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar
from unicodedata import combining, normalize

from models.text import PlacedWords, lower_words, placed_words, word_texts
from models.types import Span

#: Number of lexicons that `shared` keeps: those of a few releases.
KEPT = 8


class NameLexicon:
    """Names, each with its canonical name; compared word by word, without case and accents."""

    def __init__(self, canonical_names: Mapping[str, str]) -> None:
        """`canonical_names`: canonical name by name."""
        self._canonical = {_key(name): canonical for name, canonical in canonical_names.items()}
        # The number of words of the longest name that begins with a word, by that word.
        self._longest: dict[str, int] = {}
        for key in self._canonical:
            if key:
                self._longest[key[0]] = max(len(key), self._longest.get(key[0], 0))

    @classmethod
    def of(cls, names: Iterable[str]) -> Self:
        """A lexicon in which each name is its own canonical name."""
        return cls({name: name for name in names})

    def __len__(self) -> int:
        return len(self._canonical)

    def canonical(self, name: str) -> str | None:
        """The canonical name of a name as written in a text, or None when it is not in the lexicon."""
        return self._canonical.get(_key(name))

    def of_word(self, word: str) -> str | None:
        """The canonical name of a word of ASCII letters in lower case, without a search for words in it."""
        return self._canonical.get((word,))

    def find(self, text: str) -> list[tuple[Span, str]]:
        """The names in the text with their canonical names, from left to right without overlap; the longest
        where several begin at the same word.
        """
        runs = self._runs(_without_accents(lower_words(text)))
        words = placed_words(text) if runs else None
        return [(words.span(first, after), name) for first, after, name in runs] if words else []

    def among(self, words: PlacedWords) -> list[tuple[Span, str]]:
        """What `find` gives, among consecutive words of a text."""
        return [(words.span(first, after), name) for first, after, name in self.runs(words.texts)]

    def runs(self, words: Sequence[str]) -> list[tuple[int, int, str]]:
        """The names among words: for each the number of its first word, the number behind its last word, and
        the canonical name.
        """
        return self._runs(_plain(words))

    def _runs(self, tokens: Sequence[str]) -> list[tuple[int, int, str]]:
        matches: list[tuple[int, int, str]] = []
        if self._longest.keys().isdisjoint(tokens):
            return matches
        for i in [i for i, token in enumerate(tokens) if token in self._longest]:
            if matches and i < matches[-1][1]:
                continue
            for n in range(min(self._longest[tokens[i]], len(tokens) - i), 0, -1):
                canonical = self._canonical.get(tuple(tokens[i : i + n]))
                if canonical is not None:
                    matches.append((i, i + n, canonical))
                    break
        return matches


Lexicon = TypeVar("Lexicon", bound=NameLexicon)
_kept: dict[tuple[Any, bytes], Any] = {}
_lock = threading.Lock()


def shared(path: Path, read: Callable[[Path], Lexicon]) -> Lexicon:
    """What `read` makes of the file, once for all files of the same content: releases of different tasks have
    the same lexicons, and nothing changes one. The last few are kept.
    """
    key = (read, hashlib.sha256(path.read_bytes()).digest())
    with _lock:
        found: Lexicon = _kept.pop(key) if key in _kept else read(path)
        _kept[key] = found
        if len(_kept) > KEPT:
            del _kept[next(iter(_kept))]
        return found


def _key(name: str) -> tuple[str, ...]:
    return tuple(_plain(word_texts(name)))


def _plain(words: Sequence[str]) -> Sequence[str]:
    """The words in lower case, without accents ("ibuprof\u00e9n")."""
    return _without_accents(list(map(str.lower, words)))


def _without_accents(lower: Sequence[str]) -> Sequence[str]:
    if "".join(lower).isascii():
        return lower
    return ["".join(c for c in normalize("NFD", word) if not combining(c)) for word in lower]
