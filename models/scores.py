"""Scores with bootstrap intervals, and paired comparisons of two systems on the same records.

A count matrix has one row per record. A score is a function of the sum of the rows: of all rows it is the
score, of rows drawn with replacement a bootstrap draw. A rank correlation is not a function of sums and is
computed from the drawn rows themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.float64]
Spans = Iterable[tuple[int, int, str]]
#: Limits of the central 95 %.
PERCENTILES = (2.5, 97.5)
#: Numbers in one chunk of resampling weights, 16 MiB.
_CHUNK = 1 << 21


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One score of a candidate and of the live release on the same records, on which the gate decides."""

    score: str
    definition: str
    data: str
    split: str
    records: int
    candidate: float
    live: float
    difference: float
    low: float
    high: float
    """limits of the difference's 95 % interval, by paired bootstrap"""

    @property
    def better_or_equal(self) -> bool:
        return self.candidate >= self.live


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


class Interval(NamedTuple):
    """Limits of a 95 % interval."""

    low: float
    high: float


class Difference(NamedTuple):
    """The score of one system minus that of another on all records, with its 95 % interval."""

    difference: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Measure:
    """A score: its name, its definition in one line, and `value`, which maps sums (rows, columns) to scores
    (rows,).
    """

    name: str
    definition: str
    value: Callable[[Counts], Counts]

    def of(self, counts: Counts) -> float:
        """The score of all records, from their counts (records, columns)."""
        return float(self.value(counts.sum(0, keepdims=True))[0])

    def of_draws(self, counts: Counts, weights: Counts) -> Counts:
        """(draws,): the score of each draw, which contains each record `weights` (draws, records) times."""
        # One product per matrix, so that identical matrices have sums that are identical to the last bit.
        return self.value(weights @ counts)


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


def micro_f1(name: str, definition: str, triples: Sequence[int]) -> Measure:
    """F1 of the sum of some triples of columns (true positives, predicted, gold), each given by its first
    column; 0 where nothing is predicted or gold.
    """
    first = np.array(triples)
    return Measure(name, definition, lambda sums: f1_of(*(sums[:, first + i].sum(1) for i in range(3))))


def macro_f1(name: str, definition: str, triples: Sequence[int]) -> Measure:
    """The mean of the F1 of each triple of columns, see `micro_f1`; a triple of zeros counts as 0."""
    first = np.array(triples)
    return Measure(
        name,
        definition,
        lambda sums: f1_of(*(sums[:, first + i] for i in range(3))).mean(1, dtype=np.float64),
    )


def ratio(name: str, definition: str, columns: tuple[int, int], times: float = 1.0) -> Measure:
    """The sum of the first column divided by that of the second, multiplied by `times`; 0 for a divisor 0."""
    one, other = columns
    return Measure(name, definition, lambda sums: times * divide_or_zero(sums[:, one], sums[:, other]))


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


def span_counts(predicted: Sequence[Spans], gold: Sequence[Spans], labels: Sequence[str]) -> Counts:
    """(texts, 3 * labels): numbers of true positive, predicted and gold spans of each label of `labels`.

    A true positive has the boundaries and the label of a gold span. Spans (start, end, label) of other labels
    are ignored; duplicates within a text count once. Raises ValueError for different numbers of texts.
    """
    rows = []
    for own_predicted, own_gold in zip(predicted, gold, strict=True):
        ps, gs = set(own_predicted), set(own_gold)
        found_labels = [[s[2] for s in spans] for spans in (ps & gs, ps, gs)]
        rows.append([found.count(label) for label in labels for found in found_labels])
    return np.array(rows, dtype=np.float64).reshape(len(rows), 3 * len(labels))


def strict_spans(predicted: Sequence[Spans], gold: Sequence[Spans], labels: Iterable[str]) -> SpanScores:
    """F1 by the counts of `span_counts` over all texts; macro F1 is the mean over `labels`."""
    ordered = sorted(labels)
    sums = span_counts(predicted, gold, ordered).sum(0).astype(int).reshape(-1, 3)
    by_label = {label: f1(*row) for label, row in zip(ordered, sums.tolist(), strict=True)}
    macro = sum(s.f1 for s in by_label.values()) / len(ordered)
    return SpanScores(f1(*sums.sum(0).tolist()), macro, by_label)


def bootstrap(
    counts: Counts, measures: Iterable[Measure], *, draws: int = 1000, seed: int = 0
) -> dict[str, Interval]:
    """The percentile bootstrap interval of 95 % of each score; each draw has as many records as `counts`.

    Raises ValueError when there is no record.
    """
    (values,) = _resampled((counts,), tuple(measures), draws, seed)
    return {name: Interval(*np.percentile(v, PERCENTILES).tolist()) for name, v in values.items()}


def paired_bootstrap(
    ours: Counts, theirs: Counts, measures: Iterable[Measure], *, draws: int = 1000, seed: int = 0
) -> dict[str, Difference]:
    """For each score ours minus theirs, with its percentile bootstrap interval of 95 %; a draw has the same
    records on both sides.

    The rows of both must be the same records in the same order. Raises ValueError when their numbers differ
    or are 0.
    """
    if len(ours) != len(theirs):
        raise ValueError(f"{len(ours)} records cannot be paired with {len(theirs)}")
    compared = tuple(measures)
    our_values, their_values = _resampled((ours, theirs), compared, draws, seed)
    differences = {}
    for m in compared:
        low, high = np.percentile(our_values[m.name] - their_values[m.name], PERCENTILES).tolist()
        differences[m.name] = Difference(m.of(ours) - m.of(theirs), low, high)
    return differences


def _resampled(
    matrices: Sequence[Counts], measures: Sequence[Measure], draws: int, seed: int
) -> list[dict[str, Counts]]:
    """For each matrix the scores (draws,) by name; a draw has the same rows of every matrix."""
    parts: list[dict[str, list[Counts]]] = [{m.name: [] for m in measures} for _ in matrices]
    for weights in _weights(len(matrices[0]), draws, seed):
        for part, matrix in zip(parts, matrices, strict=True):
            for m in measures:
                part[m.name].append(m.of_draws(matrix, weights))
    return [{name: np.concatenate(values) for name, values in part.items()} for part in parts]


def _weights(records: int, draws: int, seed: int) -> Iterator[Counts]:
    """How often each draw contains each record, in chunks (draws, records) of bounded size."""
    if not records:
        raise ValueError("there is no record to draw")
    rng = np.random.default_rng(seed)
    size = max(1, _CHUNK // records)
    for start in range(0, draws, size):
        drawn = rng.multinomial(records, np.full(records, 1 / records), min(size, draws - start))
        yield drawn.astype(np.float64)


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


def f1_of(true_positives: Counts, predicted: Counts, gold: Counts) -> Counts:
    """F1 elementwise; 0 where nothing is predicted or gold."""
    return divide_or_zero(2 * true_positives, predicted + gold)


def divide_or_zero(numerator: Counts, denominator: Counts) -> Counts:
    """The elementwise quotient; 0 where the denominator is 0."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)
