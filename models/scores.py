"""Scores with bootstrap intervals, and paired comparisons of two systems on the same records.

A count matrix has one row per record. A score is a function of the sum of the rows: of all rows it is the
score, of rows drawn with replacement a bootstrap draw. Scores that are no functions of sums are in
training/evaluation/measures.py.
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
    """A score; `value` maps sums (rows, columns) to scores (rows,)."""

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


def micro_f1(name: str, definition: str, triples: Sequence[int]) -> Measure:
    """F1 of the sum of some triples of columns (true positives, predicted, gold), each given by its first
    column; 0 where nothing is predicted or gold.
    """
    first = np.array(triples)
    return Measure(name, definition, lambda sums: f1_of(*(sums[:, first + i].sum(1) for i in range(3))))


def ratio(name: str, definition: str, columns: tuple[int, int], times: float = 1.0) -> Measure:
    """The sum of the first column divided by that of the second, multiplied by `times`; 0 for a divisor 0."""
    one, other = columns
    return Measure(name, definition, lambda sums: times * divide_or_zero(sums[:, one], sums[:, other]))


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


def f1_of(true_positives: Counts, predicted: Counts, gold: Counts) -> Counts:
    """F1 elementwise; 0 where nothing is predicted or gold."""
    return divide_or_zero(2 * true_positives, predicted + gold)


def divide_or_zero(numerator: Counts, denominator: Counts) -> Counts:
    """The elementwise quotient; 0 where the denominator is 0."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)
