"""Where the uses of a long form lie: the mean vector of training sentences with its acronym, and how often
each long form was meant.

A long form has one prototype for each source of sentences; the nearest counts. One without a prototype is
given a fixed similarity, so that it can still win over long forms that lie far away.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from torch import Tensor, nn

from models.acronym.surface_features import undotted
from models.releases.manifest import ReleaseError
from models.releases.tensors import read_tensors
from models.tables import read_tsv

TABLE = "prototypes.tsv"
VECTORS = "prototypes.safetensors"
COLUMNS = ("short_form", "long_form", "source", "rows")


class Use(NamedTuple):
    """A long form in one source: how many rows mean it."""

    short_form: str
    long_form: str
    source: str
    rows: int


class Mixture(NamedTuple):
    """Weights of the parts of a long form's score; all are chosen on validation rows."""

    network: float = 1.0
    similarity: float = 30.0
    prior: float = 0.7
    unseen: float = 0.5
    """the cosine of a long form without prototype"""
    smoothing: float = 0.5
    """rows that every long form is taken to have"""


class Prototypes:
    """Immutable; `vectors` (uses, dimension) in the order of `uses`."""

    def __init__(self, uses: Sequence[Use], vectors: Tensor, mixture: Mixture) -> None:
        if len(uses) != len(vectors):
            raise ValueError(f"{len(uses)} uses and {len(vectors)} vectors do not fit")
        self.uses = tuple(uses)
        self.vectors = nn.functional.normalize(vectors.float(), dim=-1)
        self.mixture = mixture
        self._rows: dict[tuple[str, str], list[int]] = {}
        self._totals: dict[str, dict[str, int]] = {}
        for i, use in enumerate(self.uses):
            self._rows.setdefault((use.short_form, use.long_form), []).append(i)
            totals = self._totals.setdefault(use.short_form, {})
            totals[use.source] = totals.get(use.source, 0) + use.rows

    @classmethod
    def load(cls, table: Path, vectors: Path, mixture: Mixture) -> Prototypes:
        uses = [Use(row[0], row[1], row[2], int(row[3])) for row in read_tsv(table, COLUMNS)]
        tensors = read_tensors(vectors)
        if set(tensors) != {"vectors"} or len(tensors["vectors"]) != len(uses):
            raise ReleaseError(f"{vectors.name} does not hold one vector for each row of {table.name}")
        return cls(uses, tensors["vectors"], mixture)

    def knows(self, short_form: str, long_forms: Sequence[str]) -> int:
        """How many of the long forms have a prototype."""
        short = undotted(short_form)
        return sum((short, form) in self._rows for form in long_forms)

    def similarities(self, short_form: str, long_forms: Sequence[str], vector: Tensor) -> list[float]:
        """Cosine of each long form's nearest prototype and `vector` (dimension,)."""
        unit = nn.functional.normalize(vector.float(), dim=-1)
        found = []
        for form in long_forms:
            rows = self._rows.get((undotted(short_form), form))
            cosine = float((self.vectors[rows] @ unit).max()) if rows else self.mixture.unseen
            found.append(cosine)
        return found

    def priors(self, short_form: str, long_forms: Sequence[str]) -> list[float]:
        """Logarithm of how often each long form is meant: the mean of the sources' shares."""
        short = undotted(short_form)
        sources = self._totals.get(short, {})
        smoothing = self.mixture.smoothing
        shares = [0.0] * len(long_forms)
        for source in sources:
            rows = [
                sum(
                    self.uses[i].rows for i in self._rows.get((short, f), ()) if self.uses[i].source == source
                )
                for f in long_forms
            ]
            total = sum(rows) + smoothing * len(rows)
            shares = [s + (n + smoothing) / total for s, n in zip(shares, rows, strict=True)]
        return [math.log(s / len(sources)) if sources else 0.0 for s in shares]

    def mixed(
        self, short_form: str, long_forms: Sequence[str], network: Sequence[float], vector: Tensor
    ) -> list[float]:
        """The score of each long form; the network's alone where none has a prototype."""
        if not self.knows(short_form, long_forms):
            return list(network)
        m = self.mixture
        parts = zip(
            network,
            self.similarities(short_form, long_forms, vector),
            self.priors(short_form, long_forms),
            strict=True,
        )
        return [m.network * n + m.similarity * s + m.prior * p for n, s, p in parts]
