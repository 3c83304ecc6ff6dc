"""What a release knows by heart: training words with their tags, training pairs with their verdicts, and the
votes of those nearest to a new one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]
Vote = Literal["majority", "similarity"]
#: Of the weights exp(cosine / temperature) where votes are weighted: that of the loss (CLNER, Eq. 6).
TEMPERATURE = 0.1


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


def votes(cosines: Floats, tags: Numbers, n_tags: int, vote: Vote = "majority") -> tuple[Numbers, Floats]:
    """The winning tag of each query and its share, from its neighbours' cosines and tags, (queries, k) each.

    `majority`: every neighbour counts as one (the paper's). `similarity`: as exp(cosine / 0.1).
    """
    weights = np.ones_like(cosines) if vote == "majority" else np.exp((cosines - 1) / TEMPERATURE)
    sums = np.zeros((len(tags), n_tags), np.float32)
    np.add.at(sums, (np.arange(len(tags))[:, None], tags), weights)
    return sums.argmax(1), (sums.max(1) / weights.sum(1)).astype(np.float32)
