"""The kNN support set of a release: labelled training pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


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
    """Training pairs as unit vectors, with their label and sentence id."""

    pairs: Floats
    """(pairs, 2 * dimension of the relation space): [drug ; effect]"""
    related: NDArray[np.bool_]
    """(pairs,): whether the drug caused the effect"""
    named: list[NamedPair]
    """(pairs,)"""

    def fits(self, dimension: int) -> bool:
        """Whether the shapes agree with each other and with the dimension of the relation space."""
        return self.pairs.shape == (len(self.named), 2 * dimension) and len(self.related) == len(self.named)
