"""Scores as functions of sums over records, so that any of them has an interval and any two can be compared.

A count matrix has one row for each record. A score is computed from the sum of the rows: over all records it
is the score itself, over records drawn with replacement it is a bootstrap draw. A rank correlation is no
function of sums: it is computed from the drawn rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.float64]
Spans = Iterable[tuple[int, int, str]]
#: Percentiles that leave 95 % between them.
PERCENTILES = (2.5, 97.5)
#: Numbers of one chunk of resampling weights: 16 MiB.
_CHUNK = 1 << 21


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One score of a candidate and of the live release on the same records: what the gate goes by."""

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
    """Limits of the difference's 95 % interval, by paired bootstrap."""

    @property
    def better_or_equal(self) -> bool:
        return self.candidate >= self.live


class F1(NamedTuple):
    precision: float
    recall: float
    f1: float


class SpanScores(NamedTuple):
    micro: F1
    macro_f1: float
    by_label: dict[str, F1]


class Interval(NamedTuple):
    low: float
    high: float


class Difference(NamedTuple):
    """Ours less theirs on all records, and the interval of that difference."""

    difference: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Measure:
    """A score, what it counts in one line, and how it follows from sums: (rows, columns) to (rows,)."""

    name: str
    definition: str
    value: Callable[[Counts], Counts]

    def of(self, counts: Counts) -> float:
        """The score of all records together."""
        return float(self.value(counts.sum(0, keepdims=True))[0])

    def drawn(self, counts: Counts, weights: Counts) -> Counts:
        """(draws,): the score of each draw, given how often it takes each record, (draws, records)."""
        # One product for each matrix: identical matrices must give identical sums to the last bit.
        return self.value(weights @ counts)


@dataclass(frozen=True, slots=True)
class RecordMeasure(Measure):
    """A score that no sums over records give: `value` takes the records themselves, (records, columns) to
    (1,).
    """

    def of(self, counts: Counts) -> float:
        return float(self.value(counts)[0])

    def drawn(self, counts: Counts, weights: Counts) -> Counts:
        rows = np.arange(len(counts))
        return np.concatenate([self.value(counts[np.repeat(rows, w.astype(np.intp))]) for w in weights])


def micro_f1(name: str, definition: str, triples: Sequence[int]) -> Measure:
    """F1 of summed triples (true positive, predicted, gold), each given by its first column; 0 where nothing
    is gold or predicted.
    """
    first = np.array(triples)
    return Measure(name, definition, lambda sums: f1_of(*(sums[:, first + i].sum(1) for i in range(3))))


def macro_f1(name: str, definition: str, triples: Sequence[int]) -> Measure:
    """Mean of the F1 of each triple; a triple of zeros counts as 0."""
    first = np.array(triples)
    return Measure(
        name,
        definition,
        lambda sums: f1_of(*(sums[:, first + i] for i in range(3))).mean(1, dtype=np.float64),
    )


def ratio(name: str, definition: str, columns: tuple[int, int], times: float = 1.0) -> Measure:
    """One column's sum over another's, `times` something; 0 where the other is 0."""
    over, under = columns
    return Measure(name, definition, lambda sums: times * divided(sums[:, over], sums[:, under]))


def spearman(
    name: str, definition: str, columns: tuple[int, int], only: tuple[int, float] | None = None
) -> Measure:
    """Rank correlation of two columns, over the records whose column `only[0]` is `only[1]` where that is
    given; 0 where a column does not vary.
    """
    one, other = columns

    def value(counts: Counts) -> Counts:
        kept = counts if only is None else counts[counts[:, only[0]] == only[1]]
        a, b = (_ranks(kept[:, column]) for column in (one, other))
        scale = np.array([np.sqrt((a @ a) * (b @ b))])
        return divided(np.array([a @ b]), scale)

    return RecordMeasure(name, definition, value)


def f1(true_positives: int, predicted: int, gold: int) -> F1:
    """Precision, recall and their harmonic mean; 0 where nothing was predicted or nothing is gold."""
    precision = true_positives / predicted if predicted else 0.0
    recall = true_positives / gold if gold else 0.0
    return F1(precision, recall, 2 * precision * recall / (precision + recall) if precision + recall else 0.0)


def span_counts(predicted: Sequence[Spans], gold: Sequence[Spans], labels: Sequence[str]) -> Counts:
    """(texts, 3 * labels): true positives, predicted and gold spans of each label, in the order of `labels`.

    Right means exact boundaries and label. Spans of other labels are left out on both sides; a span counts
    once a text.
    """
    rows = []
    for p, g in zip(predicted, gold, strict=True):
        ps, gs = set(p), set(g)
        kinds = [[s[2] for s in spans] for spans in (ps & gs, ps, gs)]
        rows.append([kind.count(label) for label in labels for kind in kinds])
    return np.array(rows, dtype=np.float64).reshape(len(rows), 3 * len(labels))


def strict_spans(predicted: Sequence[Spans], gold: Sequence[Spans], labels: Iterable[str]) -> SpanScores:
    """F1 of all texts together, by what `span_counts` counts as right; macro is the mean over `labels`."""
    wanted = sorted(labels)
    sums = span_counts(predicted, gold, wanted).sum(0).astype(int).reshape(-1, 3)
    by_label = {label: f1(*row) for label, row in zip(wanted, sums.tolist(), strict=True)}
    macro = sum(s.f1 for s in by_label.values()) / len(wanted)
    return SpanScores(f1(*sums.sum(0).tolist()), macro, by_label)


def bootstrap(
    counts: Counts, measures: Iterable[Measure], *, draws: int = 1000, seed: int = 0
) -> dict[str, Interval]:
    """Percentile 95 % interval of each score, by drawing as many records as there are, with replacement."""
    (values,) = _resampled((counts,), tuple(measures), draws, seed)
    return {name: Interval(*np.percentile(v, PERCENTILES).tolist()) for name, v in values.items()}


def paired_bootstrap(
    ours: Counts, theirs: Counts, measures: Iterable[Measure], *, draws: int = 1000, seed: int = 0
) -> dict[str, Difference]:
    """Ours less theirs with its percentile 95 % interval; every draw takes the same records on both sides.

    The rows of both must be the same records in the same order; ValueError where they are not as many.
    """
    if len(ours) != len(theirs):
        raise ValueError(f"{len(ours)} records cannot be paired with {len(theirs)}")
    wanted = tuple(measures)
    our_values, their_values = _resampled((ours, theirs), wanted, draws, seed)
    found = {}
    for m in wanted:
        low, high = np.percentile(our_values[m.name] - their_values[m.name], PERCENTILES).tolist()
        found[m.name] = Difference(m.of(ours) - m.of(theirs), low, high)
    return found


def _resampled(
    matrices: Sequence[Counts], measures: Sequence[Measure], draws: int, seed: int
) -> list[dict[str, Counts]]:
    """For each matrix every score of each draw, (draws,); a draw takes the same rows of every matrix."""
    parts: list[dict[str, list[Counts]]] = [{m.name: [] for m in measures} for _ in matrices]
    for weights in _weights(len(matrices[0]), draws, seed):
        for part, matrix in zip(parts, matrices, strict=True):
            for m in measures:
                part[m.name].append(m.drawn(matrix, weights))
    return [{name: np.concatenate(values) for name, values in part.items()} for part in parts]


def _weights(records: int, draws: int, seed: int) -> Iterator[Counts]:
    """How often each record is drawn, (some draws, records) at a time so that memory stays bounded."""
    if not records:
        raise ValueError("there is no record to draw")
    rng = np.random.default_rng(seed)
    size = max(1, _CHUNK // records)
    for start in range(0, draws, size):
        drawn = rng.multinomial(records, np.full(records, 1 / records), min(size, draws - start))
        yield drawn.astype(np.float64)


def _ranks(values: Counts) -> Counts:
    """Ranks less their mean; equal values share the mean of their ranks."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Counts = (counts.cumsum() - (counts - 1) / 2)[place]
    return ranks - (len(values) + 1) / 2


def f1_of(true_positives: Counts, predicted: Counts, gold: Counts) -> Counts:
    """Of each row; 0 where nothing is predicted or gold."""
    return divided(2 * true_positives, predicted + gold)


def divided(over: Counts, under: Counts) -> Counts:
    """0 where the divisor is 0."""
    return np.divide(over, under, out=np.zeros_like(over), where=under > 0)
