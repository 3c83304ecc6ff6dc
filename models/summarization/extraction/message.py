"""The input of the extractor: names of the lexicons, and the vectors of words."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from models.encoder.model import Encoder
from models.summarization.extraction.key_words import KeyWords, word_key
from models.summarization.medical_entities import OwnRecogniser
from models.text import words_to_read
from models.types import Span

_MASK = re.compile(r"\[[A-Z_ ]{1,30}\]")


class Message(NamedTuple):
    """A text with its words, and the names in it."""

    text: str
    words: list[Span]
    """those that are read, see `words_to_read`"""
    sums: Tensor
    """(words + 1, dimension): of the vectors of the first words"""
    drugs: list[Span]
    terms: list[Span]
    keys: Sequence[float]
    """how probable it is that the short question has the word, of each word; zeros without such a model"""

    def vectors(self) -> Tensor:
        """(words, dimension): of each word in its context."""
        return self.sums[1:] - self.sums[:-1]

    def cosines(self, parts: Sequence[Sequence[Span]]) -> list[float]:
        """For each list of spans the cosine to the whole text of the mean over the words in them. Words are
        encoded in their context, so that one pass of the encoder gives the vectors of all parts.
        """
        if not parts:
            return []
        means = torch.stack([self.total(spans) for spans in parts])
        return torch.nn.functional.cosine_similarity(means, self.sums[-1:]).tolist()

    def cosine(self, vector: Tensor) -> float:
        """The cosine of a vector (dimension) to the whole text."""
        return float(torch.nn.functional.cosine_similarity(vector, self.sums[-1], dim=0))

    def total(self, spans: Sequence[Span]) -> Tensor:
        """(dimension): the sum of the vectors of the words in these spans."""
        total = torch.zeros_like(self.sums[0])
        for first, last in map(self._places, spans):
            total = total + self.sums[last] - self.sums[first]
        return total

    def key_probabilities(self, span: Span) -> Sequence[float]:
        """Of the words of a span."""
        first, last = self._places(span)
        return self.keys[first:last]

    def key_words(self, span: Span) -> list[tuple[str, float]]:
        """The words of a span that may be key words, as `word_keys`, with their probabilities."""
        first, last = self._places(span)
        pairs = zip(self.words[first:last], self.keys[first:last], strict=True)
        return [(word_key(self.text, w), p) for w, p in pairs if p]

    def _places(self, span: Span) -> tuple[int, int]:
        """The number of the first word of a span, and the number behind its last word."""
        first = bisect_right(self.words, span.start, key=lambda w: w.end)
        return first, max(first, bisect_left(self.words, span.end, key=lambda w: w.start))


def messages(
    encoder: Encoder, lexicons: OwnRecogniser, texts: Sequence[str], key_words: KeyWords | None = None
) -> list[Message]:
    """Reads the texts in one pass of the encoder; placeholders of removed names are no names."""
    spans = [words_to_read(text) for text in texts]
    with torch.inference_mode():
        vectors = encoder.word_vectors(
            [[t[w.start : w.end] for w in own] for t, own in zip(texts, spans, strict=True)]
        )
    zero = torch.zeros(1, encoder.dimension)
    read = []
    for text, own, v in zip(texts, spans, vectors, strict=True):
        plain = without_masks(text)
        drugs, terms = (lexicon.find(plain) for lexicon in (lexicons.drugs, lexicons.terms))
        sums = torch.cat([zero, v.cumsum(0)])
        names = [s for s, _ in drugs], [s for s, _ in terms]
        keys = key_words.probabilities(text, own, v) if key_words else [0.0] * len(own)
        read.append(Message(text, own, sums, *names, keys))
    return read


def without_masks(text: str) -> str:
    """The text with spaces in place of the placeholders of removed names, as [NAME]."""
    return _MASK.sub(lambda mask: " " * len(mask.group()), text)
