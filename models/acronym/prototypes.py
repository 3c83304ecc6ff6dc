"""Prototypes of long forms and sense priors: a prototype is the mean vector of training sentences that
contain the acronym in this sense, a prior the frequency of the sense.

A long form has one prototype for each source of sentences; the nearest counts. A long form without a
prototype gets a fixed similarity, so that it can still win against long forms whose prototypes are distant.
Of a long form that only sentences written for the purpose (source WRITTEN) show, the prototype is made of few
sentences in another style than real ones, and its similarity is raised. These sentences are no evidence of
how frequent a sense is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from torch import Tensor, nn

from models.acronym.frequencies import RARE, SenseFrequencies
from models.acronym.surface_features import undotted
from models.releases.manifest import ReleaseError
from models.releases.tensors import read_tensors
from models.tables import read_tsv

TABLE = "prototypes.tsv"
VECTORS = "prototypes.safetensors"
COLUMNS = ("short_form", "long_form", "source", "rows")


#: Source of prototypes of sentences written for the purpose.
WRITTEN = "written"


class PrototypeEntry(NamedTuple):
    """What a prototype stands for: a long form in one source of sentences."""

    short_form: str
    long_form: str
    source: str
    rows: int
    """how many rows of the source have this sense"""


class Mixture(NamedTuple):
    """Weights of the parts of a long form's score; all are chosen on validation rows."""

    network: float = 1.0
    """of the head's score"""
    similarity: float = 30.0
    """of the cosine to the nearest prototype"""
    prior: float = 0.7
    """of the logarithm of the sense prior"""
    unseen: float = 0.5
    """cosine of a long form without a prototype"""
    smoothing: float = 0.5
    """added to the number of rows of every long form, on average over those of a short form: more where the
    long form is estimated to be frequent"""
    cues: float = 0.0
    """of the sum of the cue words that stand near"""
    written: float = 0.0
    """added to the cosine of a long form of which all prototypes are of source WRITTEN, unless it is rare"""


class Prototypes:
    """The prototypes of a release; immutable."""

    def __init__(
        self,
        entries: Sequence[PrototypeEntry],
        vectors: Tensor,
        mixture: Mixture,
        frequencies: SenseFrequencies | None = None,
    ) -> None:
        """`vectors`: (entries, dimension). Raises ValueError where their number is another."""
        if len(entries) != len(vectors):
            raise ValueError(f"{len(entries)} entries do not fit {len(vectors)} vectors")
        self.entries = tuple(entries)
        self.vectors = nn.functional.normalize(vectors.float(), dim=-1)
        self.mixture = mixture
        self.frequencies = frequencies or SenseFrequencies()
        self._rows: dict[tuple[str, str], list[int]] = {}
        self._sources: dict[str, list[str]] = {}
        for row, entry in enumerate(self.entries):
            self._rows.setdefault((entry.short_form, entry.long_form), []).append(row)
            sources = self._sources.setdefault(entry.short_form, [])
            if entry.source not in sources and entry.source != WRITTEN:
                sources.append(entry.source)

    @classmethod
    def load(
        cls, table: Path, vectors: Path, mixture: Mixture, frequencies: SenseFrequencies | None = None
    ) -> Prototypes:
        """Raises ReleaseError or ValueError where the files are malformed or do not fit each other."""
        entries = [PrototypeEntry(row[0], row[1], row[2], int(row[3])) for row in read_tsv(table, COLUMNS)]
        tensors = read_tensors(vectors)
        if set(tensors) != {"vectors"} or len(tensors["vectors"]) != len(entries):
            raise ReleaseError(f"{vectors.name} does not hold one vector for each row of {table.name}")
        return cls(entries, tensors["vectors"], mixture, frequencies)

    def n_known(self, short_form: str, long_forms: Sequence[str]) -> int:
        """How many of the long forms have a prototype."""
        short = undotted(short_form)
        return sum((short, form) in self._rows for form in long_forms)

    def similarities(self, short_form: str, long_forms: Sequence[str], vector: Tensor) -> list[float]:
        """Cosine of each long form's nearest prototype and `vector` (dimension,), raised where only
        written sentences show the long form.
        """
        unit = nn.functional.normalize(vector.float(), dim=-1)
        short = undotted(short_form)
        cosines = []
        for form in long_forms:
            rows = self._rows.get((short, form))
            cosines.append(float((self.vectors[rows] @ unit).max()) if rows else self.mixture.unseen)
        raised = self.only_written(short_form, long_forms)
        return [c + self.mixture.written * r for c, r in zip(cosines, raised, strict=True)]

    def only_written(self, short_form: str, long_forms: Sequence[str]) -> list[bool]:
        """Whether a long form has prototypes of source WRITTEN alone, and is not estimated to be rare."""
        short = undotted(short_form)
        rows = [self._rows.get((short, form), []) for form in long_forms]
        written = [bool(own) and all(self.entries[i].source == WRITTEN for i in own) for own in rows]
        words = self.frequencies.words
        return [w and words.get((short, form)) != RARE for w, form in zip(written, long_forms, strict=True)]

    def priors(self, short_form: str, long_forms: Sequence[str]) -> list[float]:
        """Logarithm of each long form's share of the rows, averaged over the sources; of a short form that no
        source counts, of its estimated share, and 0 for all long forms where there is none.
        """
        short = undotted(short_form)
        sources = self._sources.get(short, [])
        expected = self.frequencies.shares(short, long_forms)
        if not sources:
            return [math.log(share) if self.frequencies.rates(short) else 0.0 for share in expected]
        smoothing = self.mixture.smoothing * len(long_forms)
        shares = [0.0] * len(long_forms)
        for source in sources:
            rows = [self._rows_in(source, short, form) for form in long_forms]
            total = sum(rows) + smoothing
            shares = [s + (n + smoothing * e) / total for s, n, e in zip(shares, rows, expected, strict=True)]
        return [math.log(s / len(sources)) for s in shares]

    def _rows_in(self, source: str, short_form: str, long_form: str) -> int:
        entries = (self.entries[i] for i in self._rows.get((short_form, long_form), ()))
        return sum(e.rows for e in entries if e.source == source)

    def combined(
        self,
        short_form: str,
        long_forms: Sequence[str],
        scores: Sequence[float],
        vector: Tensor,
        cues: Sequence[float] = (),
    ) -> list[float]:
        """The weighted sum of the head's `scores`, the similarities to `vector`, the priors and the sums of
        the `cues` (none: zeros), for each long form; the head's scores alone where no long form has a
        prototype or an estimated share.
        """
        if not self.n_known(short_form, long_forms) and not self.frequencies.rates(short_form):
            return list(scores)
        m = self.mixture
        parts = zip(
            scores,
            self.similarities(short_form, long_forms, vector),
            self.priors(short_form, long_forms),
            cues or [0.0] * len(scores),
            strict=True,
        )
        return [m.network * n + m.similarity * s + m.prior * p + m.cues * c for n, s, p, c in parts]
