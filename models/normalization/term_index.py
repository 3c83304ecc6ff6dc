"""The names of a terminology and patients' phrases, searched by cosine."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from models.normalization.packed_vectors import Vectors, index_of
from models.normalization.patient_phrases import Phrases
from models.terminology import Term
from models.types import Candidate

Array = np.ndarray[Any, Any]
#: Cosines and rows, best first.
Near = tuple[Array, Array]


class TermIndex:
    """The rows are those of the terms, then those of each set of phrases; each has a preferred term."""

    def __init__(
        self, terms: Sequence[Term], vectors: Vectors, sets: Sequence[Phrases], device: str = "cpu"
    ) -> None:
        """`vectors` (terms, dimension) are unit vectors of the terms."""
        self._terms = terms
        # Phrases are coded to the lowest-level term of the same name, which models.terminology.load ensures.
        self._own_term = {t.pt: t for t in reversed(terms)} | {t.pt: t for t in terms if t.llt == t.pt}
        self._index = index_of([vectors, *(p.vectors for p in sets)], device)
        self._phrases = [phrase for p in sets for phrase in zip(p.texts, p.pts, strict=True)]
        numbers = {pt: i for i, pt in enumerate(dict.fromkeys(t.pt for t in terms))}
        self._pts = list(numbers)
        self._names = frozenset(_plain(t.llt) for t in terms)
        self._frequencies = np.array([self._own_term[pt].frequency for pt in self._pts], np.float64)
        pts = [*(t.pt for t in terms), *(pt for _, pt in self._phrases)]
        self.concepts = np.array([numbers[pt] for pt in pts])
        """(rows,): the number of each one's preferred term"""
        # For each row the minimum cosine, and the penalty that is subtracted from the cosine.
        sizes = [len(terms), *(len(p.texts) for p in sets)]
        self._least = np.repeat([-2.0, *(p.min_cosine for p in sets)], sizes)
        self._penalties = np.repeat(np.array([0.0, *(p.penalty for p in sets)], np.float32), sizes)

    def of_terms(self) -> TermIndex:
        """The same index without phrases, which shares its vectors."""
        alone = copy.copy(self)
        # No cosine of a phrase reaches this threshold.
        alone._least = np.where(np.arange(len(self._least)) < len(self._terms), self._least, 2.0)
        return alone

    def search(self, vectors: Array, n: int) -> Iterator[Near]:
        """Of each query (queries, dimension) the rows that count among the `n` nearest, without phrases whose
        cosine is below their threshold, and their cosines less the penalty of phrases, best first.
        """
        for scores, rows in zip(*self._index.search(vectors, n), strict=True):
            counts = scores >= self._least[rows]
            counting = rows[counts]
            cosines = scores[counts] - self._penalties[counting]
            order = np.argsort(-cosines, kind="stable")
            yield cosines[order], counting[order]

    def ranked(self, cosines: Array, rows: Array, vote: float, prior: float) -> list[int]:
        """Of each preferred term the position of its nearest row, the term with the most votes first; `vote`
        and `prior` as in NormalizationModel.
        """
        concepts, first, number = np.unique(self.concepts[rows], return_index=True, return_inverse=True)
        if not len(concepts):
            return []
        votes = cosines[first].astype(np.float64)
        if vote:
            near = np.exp((cosines - cosines[first][number]) / vote)
            votes += vote * np.log(np.bincount(number, near))
        votes += prior * self._frequencies[concepts]
        return [int(i) for i in first[np.lexsort((first, -votes))]]

    def candidate(self, row: int, score: float) -> Candidate:
        if row < len(self._terms):
            term = self._terms[row]
            return Candidate(term.llt, term.pt, term.soc, round(score, 4))
        text, pt = self._phrases[row - len(self._terms)]
        return self.of_pt(pt, score, text)

    def of_pt(self, pt: str, score: float, phrase: str) -> Candidate:
        term = self._own_term[pt]
        return Candidate(term.llt, term.pt, term.soc, round(score, 4), phrase)

    def named(self, text: str, rows: Array) -> int | None:
        """The number of the preferred term that has a name with these very words, of those at `rows`; None
        where there is no such name, or where one like it, or a mention that people coded, has another term.
        """
        if not self.is_name(text):
            return None
        wanted, terms = _plain(text), len(self._terms)
        alike = [row for row in map(int, rows) if _plain(self.name(row)) == wanted]
        # Written phrases, which have a penalty, may be ambiguous ("burns").
        concepts = {int(self.concepts[row]) for row in alike if not self._penalties[row]}
        return concepts.pop() if len(concepts) == 1 and min(alike) < terms else None

    def is_name(self, text: str) -> bool:
        """Whether a lowest-level term has these very words."""
        return _plain(text) in self._names

    def name(self, row: int) -> str:
        """The lowest-level term or the phrase of a row."""
        terms = len(self._terms)
        return self._terms[row].llt if row < terms else self._phrases[row - terms][0]

    def pt(self, row: int) -> str:
        """The preferred term of a row."""
        return self._pts[int(self.concepts[row])]

    def has(self, pt: str) -> bool:
        """Whether it is a preferred term of the terminology."""
        return pt in self._own_term

    def is_serious(self, pt: str) -> bool:
        return self._own_term[pt].serious


def _plain(text: str) -> str:
    """Without case and with single spaces."""
    return " ".join(text.lower().split())
