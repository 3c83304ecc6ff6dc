"""All words that are one edit from a word. The first letter of a word is seldom wrong, and stays in most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from string import ascii_lowercase

#: Each letter in place of any.
ANY = dict.fromkeys(ascii_lowercase, ascii_lowercase)


def exchanged(word: str, first: int = 1) -> Iterator[str]:
    """Two neighbouring letters exchanged, from the letter number `first` on."""
    return (f"{word[:i]}{word[i + 1]}{word[i]}{word[i + 2 :]}" for i in range(first, len(word) - 1))


def left_out(word: str) -> Iterator[str]:
    """A letter but the first left out."""
    return (word[:i] + word[i + 1 :] for i in range(1, len(word)))


def added(word: str) -> Iterator[str]:
    """Any letter added behind the first."""
    return (word[:i] + letter + word[i:] for i in range(1, len(word) + 1) for letter in ascii_lowercase)


def replaced(word: str, by: Mapping[str, str] = ANY, first: int = 1) -> Iterator[str]:
    """A letter, from number `first` on, replaced by each that `by` has for it."""
    return (
        word[:i] + letter + word[i + 1 :] for i in range(first, len(word)) for letter in by.get(word[i], "")
    )
