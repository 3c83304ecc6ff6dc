"""The counts behind every statistic: one 2x2 table of reports for each pair of a drug and a term."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Counts:
    """Arrays of equal length, one entry for each pair, in reports."""

    n: Floats
    """Reports with the drug and the term."""
    drug: Floats
    """Reports with the drug."""
    term: Floats
    """Reports with the term."""
    total: Floats
    """All reports of the population."""
    stratified: Floats | None = None
    """Expected reports, summed over strata; None: from the margins."""

    def __len__(self) -> int:
        return len(self.n)

    @property
    def expected(self) -> Floats:
        """Reports that independence of drug and term would give: drug x term / total (DuMouchel 1999)."""
        return self.drug * self.term / self.total if self.stratified is None else self.stratified

    @property
    def cells(self) -> tuple[Floats, Floats, Floats, Floats]:
        """a: drug and term, b: drug without term, c: term without drug, d: neither."""
        b, c = self.drug - self.n, self.term - self.n
        return self.n, b, c, self.total - self.n - b - c

    def take(self, rows: NDArray[np.intp]) -> Counts:
        """The counts of some pairs."""
        stratified = None if self.stratified is None else self.stratified[rows]
        return Counts(self.n[rows], self.drug[rows], self.term[rows], self.total[rows], stratified)


def counts_of(cells: Iterable[tuple[float, float, float, float]]) -> Counts:
    """Counts from the cells a, b, c, d of 2x2 tables."""
    a, b, c, d = np.asarray(list(cells), float).reshape(-1, 4).T
    return Counts(a, a + b, a + c, a + b + c + d)
