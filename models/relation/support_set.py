"""The kNN support set of a release (labelled training words and training pairs) and the vote of the nearest
neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.ner.decoding import viterbi

Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]
#: Added to every share before the logarithm, so that a tag without any vote stays possible.
FLOOR = 0.05
#: The tensors of the token head in a release's support file.
HEAD = ("head_weight", "head_bias")


@dataclass(frozen=True, slots=True)
class TokenHead:
    """The linear layer that CLNER's cross-entropy trains beside the contrast."""

    weight: Floats
    """(tags, dimension of the encoder)"""
    bias: Floats
    """(tags,)"""

    def probabilities(self, vectors: Floats) -> Floats:
        """(words, tags) from the encoder's vectors (words, dimension), which are no unit vectors."""
        logits = vectors @ self.weight.T + self.bias
        exponentials = np.exp(logits - logits.max(1, keepdims=True))
        found: Floats = (exponentials / exponentials.sum(1, keepdims=True)).astype(np.float32)
        return found


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
    pair_ids: list[str]
    """(pairs,): the sentence of each pair"""
    transitions: Floats | None = None
    """(tags + 1, tags): weighted log-probability of a tag (column) after another (row); the last row is for
    the first word of a sentence. None: each word is tagged independently of its neighbours in the sentence.
    """
    head: TokenHead | None = None
    """over the words' vectors by the encoder, where training kept one"""

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Floats], pair_ids: list[str]) -> SupportSet:
        """From the arrays of a release's support file; shapes are not checked, see `fits`."""
        return cls(
            words=tensors["words"],
            tags=tensors["tags"].astype(np.int64),
            pairs=tensors["pairs"],
            related=tensors["related"] > 0,
            pair_ids=pair_ids,
            head=TokenHead(tensors[HEAD[0]], tensors[HEAD[1]]) if HEAD[0] in tensors else None,
            transitions=tensors.get("transitions"),
        )

    def fits(self, dimension: int, pair_dimension: int, n_tags: int, hidden: int) -> bool:
        """Whether the shapes agree with each other, with the dimensions of the entity space, of the relation
        space and of the encoder (`hidden`), and with the number of tags.
        """
        head = self.head
        return (
            self.words.shape == (len(self.tags), dimension)
            and self.pairs.shape == (len(self.pair_ids), 2 * pair_dimension)
            and len(self.related) == len(self.pair_ids)
            and bool(self.tags.max(initial=0) < n_tags)
            and (head is None or (head.weight.shape, head.bias.shape) == ((n_tags, hidden), (n_tags,)))
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
