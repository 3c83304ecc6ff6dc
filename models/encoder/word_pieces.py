"""The pieces that a tokenizer makes of words and texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class WordPieces:
    """The pieces of one sentence and which of them belong to each of its words."""

    first: list[int]
    """of each word the index of its first piece in `pieces`"""
    count: list[int]
    """of each word the number of its pieces; 0 where the tokenizer drops the word"""
    pieces: list[int]
    """token numbers without special tokens"""


class PlacedPieces(NamedTuple):
    """The pieces of a text and the characters that each of them was made of."""

    pieces: list[int]
    places: list[tuple[int, int]]


def joined(words: Sequence[Sequence[int]]) -> WordPieces:
    """The pieces of a sentence from those of its words."""
    count = list(map(len, words))
    ends = list(accumulate(count, initial=0))
    return WordPieces(ends[:-1], count, list(chain.from_iterable(words)))


def word_pieces(word_ids: list[int | None], pieces: list[int], n_words: int) -> WordPieces:
    """Of the pieces of a sentence and the word of each (None: special), those of its `n_words` words."""
    count = [0] * n_words
    for w in word_ids:
        if w is not None and w < n_words:
            count[w] += 1
    first, position = [], 0
    for c in count:
        first.append(position)
        position += c
    return WordPieces(first, count, pieces[:position])
