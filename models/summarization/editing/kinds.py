"""The probability of each kind of question for a message and its asking clause: logistic regressions over cue
words and over the vectors of both, which are means of word vectors.
"""

from __future__ import annotations

import torch
from torch import Tensor

from models.summarization.editing.openings import CUES, KINDS
from models.summarization.extraction.message import Message
from models.types import Span

#: Scale of the unit vectors relative to the cue words, which are 0 or 1.
_VECTORS = 3.0


def kind_features(message: Message, clause: Span) -> Tensor:
    """(2 * cues + 2 * dimension + 1): cue words of the clause and of the text, both vectors, and 1."""
    text = message.text
    cues = [
        float(cue.search(part) is not None)
        for part in (text[clause.start : clause.end], text)
        for cue in CUES
    ]
    vectors = torch.stack([message.sums[-1], message.total([clause])])
    units = _VECTORS * torch.nn.functional.normalize(vectors, dim=1)
    return torch.cat([torch.tensor(cues), units.flatten(), torch.ones(1)])


class KindClassifier:
    """One logistic regression for each of KINDS."""

    def __init__(self, weights: Tensor) -> None:
        """`weights`: (features, kinds), see `kind_features`; raises ValueError for other kinds."""
        if weights.shape[1:] != (len(KINDS),):
            raise ValueError(f"weights of shape {tuple(weights.shape)} for {len(KINDS)} kinds of question")
        self.weights = weights

    def probabilities(self, features: Tensor) -> list[float]:
        """The probability of each of KINDS for the features of a message."""
        scores = features @ self.weights
        found: list[float] = scores.sigmoid().tolist()
        return found
