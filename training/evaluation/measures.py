"""Scores that evaluation alone uses: strict spans, means over labels, and scores that are no functions of the
sums of counts, which are computed from the drawn rows themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from models.scores import Counts, Measure, Spans, divide_or_zero, f1_of, span_counts


class F1(NamedTuple):
    """Precision, recall and their harmonic mean."""

    precision: float
    recall: float
    f1: float


class SpanScores(NamedTuple):
    """F1 over all spans, its mean over labels, and that of each label."""

    micro: F1
    macro_f1: float
    by_label: dict[str, F1]


@dataclass(frozen=True, slots=True)
class RecordMeasure(Measure):
    """A score that is not a function of sums: `value` maps the records' counts (records, columns) to (1,)."""

    def of(self, counts: Counts) -> float:
        return float(self.value(counts)[0])

    def of_draws(self, counts: Counts, weights: Counts) -> Counts:
        rows = np.arange(len(counts))
        return np.concatenate([self.value(counts[np.repeat(rows, w.astype(np.intp))]) for w in weights])


@dataclass(frozen=True, slots=True)
class WeightedMeasure(RecordMeasure):
    """The same of many draws at once: `weighted` maps the records' counts and how often each draw has each
    record (draws, records) to scores (draws,).
    """

    weighted: Callable[[Counts, Counts], Counts]

    def of_draws(self, counts: Counts, weights: Counts) -> Counts:
        return self.weighted(counts, weights)


def _weighted(name: str, definition: str, weighted: Callable[[Counts, Counts], Counts]) -> Measure:
    return WeightedMeasure(name, definition, lambda rows: weighted(rows, np.ones((1, len(rows)))), weighted)


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

    def value(counts: Counts, weights: Counts) -> Counts:
        if only is not None:
            kept = counts[:, only[0]] == only[1]
            counts, weights = counts[kept], weights[:, kept]
        a, b = (_ranks(counts[:, column], weights) for column in (one, other))
        squares = (weights * a * a).sum(1) * (weights * b * b).sum(1)
        return divide_or_zero((weights * a * b).sum(1), np.sqrt(squares))

    return _weighted(name, definition, value)


def accuracy_at(name: str, definition: str, columns: tuple[int, int, int], coverage: float) -> Measure:
    """The share of right records among the `coverage`, 0 to 1, with the highest confidence. `columns`: right,
    confidence, and whether the record counts at all; 0 where none does.
    """
    right, confidence, counted = columns

    def value(counts: Counts, weights: Counts) -> Counts:
        order = np.argsort(-counts[:, confidence], kind="stable")
        order = order[counts[order, counted] > 0]
        drawn = weights[:, order]
        records = drawn.sum(1)
        first = np.minimum(np.maximum(1, np.rint(coverage * records)), records)
        # Of each record as many as fit after those before it.
        taken = np.clip(first[:, None] - (drawn.cumsum(1) - drawn), 0, drawn)
        return divide_or_zero(taken @ counts[order, right], first)

    return _weighted(name, definition, value)


def f1(true_positives: int, predicted: int, gold: int) -> F1:
    """Precision, recall and F1 from three counts; each is 0 where its divisor is 0."""
    precision = true_positives / predicted if predicted else 0.0
    recall = true_positives / gold if gold else 0.0
    return F1(precision, recall, 2 * precision * recall / (precision + recall) if precision + recall else 0.0)


def strict_spans(predicted: Sequence[Spans], gold: Sequence[Spans], labels: Iterable[str]) -> SpanScores:
    """F1 by the counts of `span_counts` over all texts; macro F1 is the mean over `labels`."""
    ordered = sorted(labels)
    sums = span_counts(predicted, gold, ordered).sum(0).astype(int).reshape(-1, 3)
    by_label = {label: f1(*row) for label, row in zip(ordered, sums.tolist(), strict=True)}
    macro = sum(s.f1 for s in by_label.values()) / len(ordered)
    return SpanScores(f1(*sums.sum(0).tolist()), macro, by_label)


def _ranks(values: Counts, weights: Counts) -> Counts:
    """(draws, records): in each draw the records' ranks minus their mean; equal values have the mean of their
    ranks.
    """
    _, index, sizes = np.unique(values, return_inverse=True, return_counts=True)
    sorted_weights = weights[:, np.argsort(index, kind="stable")]
    counts = np.add.reduceat(sorted_weights, sizes.cumsum() - sizes, axis=1)
    ranks: Counts = (counts.cumsum(1) - (counts - 1) / 2)[:, index]
    ranks -= (weights.sum(1, keepdims=True) + 1) / 2
    return ranks
