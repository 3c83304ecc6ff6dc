"""The sentences of texts as the tagger reads them, and what their source states before them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from models.rules.sentences import sentences
from models.text import PlacedWords, placed_words
from models.types import Mention, Stated


class Sentence(NamedTuple):
    """One sentence, or several that are read together."""

    text: int
    """index of the text in the batch"""
    words: PlacedWords
    starts: list[int]
    """the indices of the words that begin a sentence, without the first"""


def read_together(batch: Sequence[str], window: int) -> list[Sentence]:
    """The sentences of each text, consecutive ones together up to `window` words."""
    made: list[Sentence] = []
    for i, text in enumerate(batch):
        words, first, after, starts = placed_words(text), 0, 0, list[int]()
        for span in sentences(text):
            end = bisect_left(words.starts, span.end)
            if first < after and end - first > window:
                made.append(Sentence(i, words.part(first, after), starts))
                first, starts = after, []
            elif first < after:
                starts.append(after - first)
            after = end
        if first < after:
            made.append(Sentence(i, words.part(first, after), starts))
    return made


def stated_before(stated: Stated) -> str:
    """A sentence with what a source states, which is read before a text; empty where it states nothing."""
    if not stated.drugs and not stated.indication:
        return ""
    medicine = ", ".join(stated.drugs) or "it"
    return f"Took {medicine} for {stated.indication}. " if stated.indication else f"Took {medicine}. "


def behind(mentions: Sequence[Mention], length: int) -> list[Mention]:
    """The mentions behind the first `length` characters, with their places in what is left of the text."""
    if not length:
        return list(mentions)
    return [replace(m, start=m.start - length, end=m.end - length) for m in mentions if m.start >= length]
