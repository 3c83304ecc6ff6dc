"""The kNN support set of a release (labelled training words and training pairs) and the vote of the nearest
neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.ner.decoding import viterbi

Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]
#: Added to every share before the logarithm, so that a tag without any vote stays possible.
FLOOR = 0.05


class NamedPair(NamedTuple):
    """A training pair in words."""

    sentence: str
    """the id of its sentence"""
    drug: str
    effect: str
    source: str = ""
    """the sentence, or where it stands"""


@dataclass(frozen=True, slots=True)
class SupportSet:
    """Training examples as unit vectors: words with their tag, pairs with their label and sentence id."""

    words: Floats
    """(words, dimension of the entity space)"""
    tags: Numbers
    """(words,): tag numbers"""
    pairs: Floats
    """(pairs, 2 * dimension of the relation space): [drug ; effect]"""
    related: NDArray[np.bool_]
    """(pairs,): whether the drug caused the effect"""
    named: list[NamedPair]
    """(pairs,)"""
    transitions: Floats | None = None
    """(tags + 1, tags): weighted log-probability of a tag (column) after another (row); the last row is for
    the first word of a sentence. None: each word is tagged independently of its neighbours in the sentence.
    """

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Floats], named: list[NamedPair]) -> SupportSet:
        """From the arrays of a release's support file; shapes are not checked, see `fits`."""
        return cls(
            words=tensors["words"],
            tags=tensors["tags"].astype(np.int64),
            pairs=tensors["pairs"],
            related=tensors["related"] > 0,
            named=named,
            transitions=tensors.get("transitions"),
        )

    def fits(self, dimension: int, pair_dimension: int, n_tags: int) -> bool:
        """Whether the shapes agree with each other, with the dimensions of the entity space and of the
        relation space, and with the number of tags.
        """
        return (
            self.words.shape == (len(self.tags), dimension)
            and self.pairs.shape == (len(self.named), 2 * pair_dimension)
            and len(self.related) == len(self.named)
            and bool(self.tags.max(initial=0) < n_tags)
            and (self.transitions is None or self.transitions.shape == (n_tags + 1, n_tags))
        )


def votes(tags: Numbers, n_tags: int) -> Floats:
    """Each tag's share of the votes, (queries, n_tags), from the tags of the k nearest neighbours, (queries,
    k), which count alike.
    """
    sums = np.zeros((len(tags), n_tags), np.float32)
    np.add.at(sums, (np.arange(len(tags))[:, None], tags), 1)
    shares: Floats = (sums / np.float32(tags.shape[1])).astype(np.float32)
    return shares


def decode_tags(shares: Floats, lengths: Sequence[int], transitions: Floats | None) -> Numbers:
    """The tag of each word, (words,), from the vote shares (words, tags) of several sentences one after
    another; `lengths`: the number of words of each sentence.

    With transitions: the most probable tag sequence of each sentence, with the votes as emissions of a
    Viterbi decoder (Yang and Katiyar 2020, StructShot). Without: the tag with most votes.
    """
    if transitions is None:
        independent: Numbers = shares.argmax(1)
        return independent
    return viterbi(np.log(shares + FLOOR), lengths, transitions).tags
