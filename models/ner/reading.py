"""The sentences of texts, as the tagger reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from models.rules.sentences import sentences
from models.text import words
from models.types import Span


class Sentence(NamedTuple):
    """One sentence, or several that are read together."""

    text: int
    """index of the text in the batch"""
    words: list[Span]
    starts: list[int]
    """the indices of the words that begin a sentence, without the first"""


def read_together(batch: Sequence[str], window: int) -> list[Sentence]:
    """The sentences of each text, consecutive ones together up to `window` words."""
    made: list[Sentence] = []
    for i, text in enumerate(batch):
        own: list[Sentence] = []
        for span in sentences(text):
            found = words(text, span)
            if own and len(own[-1].words) + len(found) <= window:
                own[-1].starts.append(len(own[-1].words))
                own[-1].words.extend(found)
            else:
                own.append(Sentence(i, found, []))
        made += own
    return made
