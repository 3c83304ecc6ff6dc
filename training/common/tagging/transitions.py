"""Transitions between tags, counted on training sentences for a Viterbi decoder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from models.ner.decoding import CONTINUATION, OUTSIDE, Floats

#: Weight of the transitions in relation to the probabilities of the tags.
WEIGHT = 0.3
#: In place of the logarithm of 0: far below what any probabilities can make up for.
NEVER = -1000.0


def transitions_of(pairs: NDArray[np.int64], tags: Sequence[str], weight: float = WEIGHT) -> Floats:
    """(tags + 1, tags): weighted log probabilities of a tag after another one, in the last row of a
    sentence's first tag; add-one smoothing over the tags that may follow.

    `pairs`, (2, n): number of a tag, or of tags behind the last for the beginning of a sentence, and number
    of the tag that follows.
    """
    counts = np.array([[float(may_follow(tag, before)) for tag in tags] for before in (*tags, OUTSIDE)])
    np.add.at(counts, tuple(pairs), 1)
    shares = counts / counts.sum(1, keepdims=True)
    logs = np.full(shares.shape, NEVER, np.float32)
    logs[shares > 0] = weight * np.log(shares[shares > 0])
    return logs


def pairs_of(sequences: Sequence[Sequence[int]], n_tags: int) -> NDArray[np.int64]:
    """(2, n): the neighbouring tag numbers of each sequence, the first one after `n_tags`."""
    pairs = [(a, b) for sequence in sequences for a, b in zip([n_tags, *sequence], sequence, strict=False)]
    return np.array(pairs, np.int64).reshape(-1, 2).T


def may_follow(tag: str, before: str) -> bool:
    """Whether a tag may follow another one: an I only its own label, X never."""
    if tag.startswith("I-"):
        return before in (tag, f"B-{tag[2:]}")
    return tag != CONTINUATION
