"""Scores that evaluation alone uses: strict spans, means over labels, and scores that are no functions of the
sums of counts, which are computed from the drawn rows themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.scores import Counts, Measure, Spans, f1_of, micro_f1, span_counts


@dataclass(frozen=True, slots=True)
class RecordMeasure(Measure):
    """A score that is not a function of sums: `value` maps the records' counts (records, columns) to (1,)."""

    def of(self, counts: Counts) -> float:
        return float(self.value(counts)[0])

    def of_draws(self, counts: Counts, weights: Counts) -> Counts:
        rows = np.arange(len(counts))
        return np.concatenate([self.value(counts[np.repeat(rows, w.astype(np.intp))]) for w in weights])


def macro_f1(name: str, definition: str, triples: Sequence[int]) -> Measure:
    """The mean of the F1 of each triple of columns, see `micro_f1`; a triple of zeros counts as 0."""
    first = np.array(triples)
    return Measure(
        name,
        definition,
        lambda sums: f1_of(*(sums[:, first + i] for i in range(3))).mean(1, dtype=np.float64),
    )


def spearman(
    name: str, definition: str, columns: tuple[int, int], only: tuple[int, float] | None = None
) -> Measure:
    """Spearman's rank correlation of two columns, over all records or those whose column `only[0]` equals
    `only[1]`; 0 where a column does not vary.
    """
    one, other = columns

    def value(counts: Counts) -> Counts:
        from scipy.stats import spearmanr  # noqa: PLC0415  a second to import

        rows = counts if only is None else counts[counts[:, only[0]] == only[1]]
        varies = len(rows) > 0 and bool(np.ptp(rows[:, list(columns)], axis=0).all())
        return np.array([spearmanr(rows[:, one], rows[:, other]).statistic if varies else 0.0])

    return RecordMeasure(name, definition, value)


def accuracy_at(name: str, definition: str, columns: tuple[int, int, int], coverage: float) -> Measure:
    """The share of right records among the `coverage`, 0 to 1, with the highest confidence. `columns`: right,
    confidence, and whether the record counts at all; 0 where none does.
    """
    right, confidence, counted = columns

    def value(counts: Counts) -> Counts:
        rows = counts[counts[:, counted] > 0]
        order = np.argsort(-rows[:, confidence], kind="stable")
        first = min(max(1, round(coverage * len(rows))), len(rows))
        return np.array([rows[order[:first], right].mean() if first else 0.0])

    return RecordMeasure(name, definition, value)


def strict_f1(predicted: Sequence[Spans], gold: Sequence[Spans], labels: Sequence[str]) -> float:
    """The micro F1 of mentions with exact boundaries and label, by the counts of `span_counts`."""
    every = range(0, 3 * len(labels), 3)
    return micro_f1("", "", every).of(span_counts(predicted, gold, labels))
