"""What a release knows by heart: training words with their tags, training pairs with their verdicts, and the
votes of those nearest to a new one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]
Vote = Literal["majority", "similarity"]
#: Of the weights exp(cosine / temperature) where votes are weighted: that of the loss (CLNER, Eq. 6).
TEMPERATURE = 0.1
#: Added to every share, so that a tag for which no neighbour votes is improbable, not impossible.
FLOOR = 0.05


@dataclass(frozen=True, slots=True)
class Support:
    """Training examples in the projected space: words with their tag numbers, pairs with their verdict and
    sentence id.
    """

    words: Floats
    """(words, dimension)"""
    tags: Numbers
    pairs: Floats
    """(pairs, 2 * dimension of a pair's word): [drug ; effect]"""
    related: NDArray[np.bool_]
    pair_ids: list[str]
    transitions: Floats | None = None
    """(tags + 1, tags), weighted log-probabilities of a tag after another, the last row of a sentence's
    first; None: each word's tag is decided by itself
    """


def votes(cosines: Floats, tags: Numbers, n_tags: int, vote: Vote = "majority") -> Floats:
    """(queries, tags): each tag's share of the votes; cosines and tags of the neighbours are (queries, k).

    `majority`: every neighbour counts as one (the paper's). `similarity`: as exp(cosine / 0.1).
    """
    weights = np.ones_like(cosines) if vote == "majority" else np.exp((cosines - 1) / TEMPERATURE)
    sums = np.zeros((len(tags), n_tags), np.float32)
    np.add.at(sums, (np.arange(len(tags))[:, None], tags), weights)
    shares: Floats = (sums / weights.sum(1, keepdims=True)).astype(np.float32)
    return shares


def decoded(shares: Floats, lengths: Sequence[int], transitions: Floats | None) -> Numbers:
    """The tag of each word, from their shares (words, tags), sentence after sentence; `lengths`: the words of
    each sentence.

    With transitions the most probable sequence of each sentence: neighbours' votes as emissions of a Viterbi
    decoder (Yang and Katiyar 2020, StructShot). Else the tag that most vote for.
    """
    if transitions is None:
        single: Numbers = shares.argmax(1)
        return single
    emitted = np.log(shares + FLOOR)
    count = np.asarray(lengths, dtype=np.int64)
    order = np.argsort(-count, kind="stable")
    # The first word of each sentence, longest sentence first: those of a step are always the first so many.
    first = (np.cumsum(count) - count)[order]
    alive = [int((count > t).sum()) for t in range(int(count.max(initial=0)))]
    best = transitions[-1] + emitted[first[: alive[0]]] if alive else np.empty((0, shares.shape[1]))
    back = []
    for t, n in enumerate(alive[1:], start=1):
        reached = best[:n, :, None] + transitions[:-1]
        back.append(reached.argmax(1))
        best[:n] = reached.max(1) + emitted[first[:n] + t]
    now = best.argmax(1)
    tags = np.zeros(len(shares), np.int64)
    for t, n in reversed(list(enumerate(alive))):
        tags[first[:n] + t] = now[:n]
        if t:
            now[:n] = back[t - 1][np.arange(n), now[:n]]
    return tags
