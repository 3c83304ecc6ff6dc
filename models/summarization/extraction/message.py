"""The input of the extractor: names of the lexicons, and the vectors of its words, from which those
of its parts are made.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from models.encoder.model import Encoder
from models.summarization.medical_entities import OwnRecogniser
from models.text import words
from models.types import Span

_MASK = re.compile(r"\[[A-Z_ ]{1,30}\]")


class Message(NamedTuple):
    """A text with its words, and the names in it."""

    text: str
    words: list[Span]
    sums: Tensor
    """(words + 1, dimension): of the vectors of the first words"""
    drugs: list[Span]
    terms: list[Span]
    one_medicine: bool
    """whether all names of medicines are of one"""

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
        for span in spans:
            first = bisect_right(self.words, span.start, key=lambda w: w.end)
            last = bisect_left(self.words, span.end, key=lambda w: w.start)
            total = total + self.sums[max(first, last)] - self.sums[first]
        return total


def messages(encoder: Encoder, lexicons: OwnRecogniser, texts: Sequence[str]) -> list[Message]:
    """Reads the texts in one pass of the encoder; placeholders of removed names are no names."""
    spans = [words(text) for text in texts]
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
        one_medicine = len({generic for _, generic in drugs}) == 1
        read.append(Message(text, own, sums, [s for s, _ in drugs], [s for s, _ in terms], one_medicine))
    return read


def without_masks(text: str) -> str:
    """The text with spaces in place of the placeholders of removed names, as [NAME]."""
    return _MASK.sub(lambda mask: " " * len(mask.group()), text)
